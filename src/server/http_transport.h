#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

namespace sluice {

/// What a transport reports to the connection that owns it. Never called from inside a call of the transport.
class TransportEvents {
 public:
  virtual ~TransportEvents() = default;
  virtual void on_open() = 0;
  /// The bytes are gone when this returns.
  virtual void on_read(std::string_view bytes) = 0;
  virtual void on_written(std::size_t bytes) = 0;
  /// The client ended the connection, or it broke.
  virtual void on_end() = 0;
};

/// A connected socket, plain or encrypted. Operations keep their owner alive until they report to it. Belongs to the
/// event thread; is destroyed before its loop.
class HttpTransport {
 public:
  using Owner = std::shared_ptr<TransportEvents>;
  virtual ~HttpTransport() = default;
  /// Shakes hands where that is needed, then on_open.
  virtual void open(Owner owner) = 0;
  /// One at a time; on_read or on_end.
  virtual void read(Owner owner) = 0;
  /// Writes what is possible without waiting, which may be nothing; none if the connection is broken. Not while a
  /// write() is under way.
  virtual std::optional<std::size_t> write_now(std::string_view bytes) = 0;
  /// One at a time; some of the bytes, then on_written or on_end. They stay in place until then.
  virtual void write(Owner owner, std::string_view bytes) = 0;
  /// Tells the client that nothing more comes. Reading goes on.
  virtual void finish(Owner owner) = 0;
  /// What is under way then reports on_end.
  virtual void close() = 0;
};

}  // namespace sluice
