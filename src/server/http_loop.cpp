#include "server/http_loop.h"

#include <exception>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/log.h"

namespace sluice {

void HttpLoop::post(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (context_) boost::asio::post(*context_, std::move(task));
}

void HttpLoop::post_after(std::chrono::milliseconds delay, std::function<void()> task) {
  if (delay == std::chrono::milliseconds::zero()) return post(std::move(task));
  post([this, delay, task = std::move(task)]() mutable {
    auto timer = std::make_shared<boost::asio::steady_timer>(*context_, delay);
    timer->async_wait([timer, task = std::move(task)](const boost::system::error_code& error) {
      if (!error) task();
    });
  });
}

void HttpLoop::start() {
  thread_ = std::thread([this] {
    thread_id_ = std::this_thread::get_id();
    run();
    thread_id_ = std::thread::id();
  });
}

void HttpLoop::run() {
  for (;;) {
    try {
      context_->run();
      return;
    } catch (const std::exception& error) {
      log_warning("a task on the event thread failed: {}", error.what());
    }
  }
}

void HttpLoop::join(std::function<void()> last) {
  post([this, last = std::move(last)] {
    last();
    post([this] { context_->stop(); });
  });
  thread_.join();
}

void HttpLoop::end() {
  work_.reset();
  std::unique_ptr<boost::asio::io_context> context;
  {
    const std::lock_guard lock(mutex_);
    context = std::move(context_);
  }
}

}  // namespace sluice
