#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

namespace sluice {

/// The event thread and its queue. Outlives the server for those who still hold an exchange: then nothing is run.
class HttpLoop {
 public:
  HttpLoop() : context_(std::make_unique<boost::asio::io_context>(1)), work_(context_->get_executor()) {}

  /// Not after end().
  boost::asio::io_context& context() { return *context_; }
  bool on_thread() const { return std::this_thread::get_id() == thread_id_.load(std::memory_order_relaxed); }

  /// From any thread. After end() the task is destroyed at once.
  void post(std::function<void()> task);
  void post_after(std::chrono::milliseconds delay, std::function<void()> task);

  void start();
  /// Runs a last task and what it posts, ends the thread and waits for it.
  void join(std::function<void()> last);
  /// Destroys what is left. All sockets must be gone.
  void end();

  /// Where the event thread reads to: what lies there is used before the next event.
  std::array<char, 64u << 10> scratch;

 private:
  void run();

  std::unique_ptr<boost::asio::io_context> context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::mutex mutex_;  // context_ against end()
  std::thread thread_;
  std::atomic<std::thread::id> thread_id_{};
};

}  // namespace sluice
