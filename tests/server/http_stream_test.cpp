#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "server/echo_server.h"

namespace sluice {

using test::Answer;
using test::EchoServer;
using test::eventually;
using test::RawClient;
using test::request_text;
using namespace std::chrono_literals;

namespace {

const std::string start_text = "one ";

bool sanitized() { return std::getenv("SLUICE_SANITIZED") != nullptr; }

/// How many of the wanted clients this machine allows for, with their server in one process.
std::size_t clients_possible(std::size_t wanted) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return std::min<std::size_t>(wanted, (limit.rlim_max - 200) / 2);
}

/// Clients in the middle of a stream of /open, which the server holds.
std::vector<RawClient> open_streams(EchoServer& server, std::size_t count) {
  std::vector<RawClient> clients;
  for (std::size_t i = 0; i < count; ++i) {
    clients.push_back(server.client());
    clients.back().send(request_text("GET", "/open"));
  }
  EXPECT_TRUE(eventually([&] { return server.held_count == static_cast<int>(count); }));
  return clients;
}

/// Writes pieces to the first exchange until it is closed, or for this many bytes.
std::size_t write_until_closed(EchoServer& server, std::size_t piece, std::size_t limit) {
  const std::string bytes(piece, 'x');
  std::size_t written = 0;
  for (bool closed = false; !closed && written < limit; written += piece) {
    server.run([&] {
      server.held[0]->write(bytes);
      closed = server.held[0]->closed();
    });
  }
  return written;
}

}  // namespace

TEST(HttpStream, SendsEachWriteAsAChunk) {
  EchoServer server;
  RawClient client = server.client();
  client.send(request_text("GET", "/stream"));
  const std::string head = client.read_until("\r\n\r\n");
  EXPECT_NE(head.find("\r\nTransfer-Encoding: chunked\r\n"), std::string::npos);
  EXPECT_NE(head.find("\r\nX-Kind: stream\r\n"), std::string::npos);
  EXPECT_EQ(head.find("Content-Length"), std::string::npos);
  EXPECT_EQ(client.read_until("0\r\n\r\n"), "4\r\none \r\n4\r\ntwo \r\n5\r\nthree\r\n0\r\n\r\n");
  EXPECT_EQ(client.ask(request_text("GET", "/stream")).body, "one two three") << "the connection is kept";
}

TEST(HttpStream, Http10GetsItWithoutChunksAndTheEndOfTheConnection) {
  EchoServer server;
  RawClient client = server.client();
  client.send("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const Answer answer = client.read_answer();
  EXPECT_FALSE(answer.has("transfer-encoding"));
  EXPECT_TRUE(answer.has("\r\nconnection: close\r\n"));
  EXPECT_EQ(answer.body, "one two three");
  EXPECT_TRUE(answer.complete);
}

TEST(HttpStream, AStreamThatBreaksOffDoesNotLookComplete) {
  EchoServer server;
  for (const char* path : {"/drop-stream", "/throw-stream"}) {
    const Answer answer = server.client().ask(request_text("GET", path));
    EXPECT_EQ(answer.body, "one ") << path;
    EXPECT_FALSE(answer.complete) << path;
  }
}

TEST(HttpStream, AStreamDroppedBeforeItsFirstByteIsA500) {
  HttpOptions options;
  options.port = 0;
  HttpServer server(options, [](auto exchange) { exchange->start_stream(200, "text/plain", {}); });
  server.start();
  EXPECT_EQ(RawClient(server.port()).ask(request_text("GET", "/")).status, 500);
}

TEST(HttpStream, BytesArriveWhenTheyAreWritten) {
  EchoServer server;
  std::vector<RawClient> clients = open_streams(server, 1);
  EXPECT_TRUE(clients[0].read_until(start_text).ends_with(start_text));
  for (int i = 0; i < 20; ++i) {
    const std::string piece = fmt::format("piece {} ", i);
    server.run([&] { server.held[0]->write(piece); });
    EXPECT_TRUE(clients[0].read_until(piece).ends_with(piece));
  }
}

TEST(HttpStream, TheHandlerHearsOnceThatItsClientLeft) {
  EchoServer server;
  std::vector<RawClient> clients = open_streams(server, 3);
  clients[0].vanish();
  clients[1].leave();
  clients[2].finish_sending();
  EXPECT_TRUE(eventually([&] { return server.left == 3 && server.all_quiet(); }));
  server.run([&] {
    for (const auto& exchange : server.held) {
      EXPECT_TRUE(exchange->closed());
      exchange->write("ignored");
      exchange->end_stream();
    }
  });
  usleep(20'000);
  EXPECT_EQ(server.left, 3);
}

TEST(HttpStream, ACallbackSetAfterTheClientLeftIsCalled) {
  EchoServer server;
  std::vector<RawClient> clients = open_streams(server, 1);
  clients[0].vanish();
  ASSERT_TRUE(eventually([&] { return server.left == 1; }));
  server.run([&] { server.held[0]->on_close([&] { ++server.left; }); });
  EXPECT_TRUE(eventually([&] { return server.left == 2; }));
}

TEST(HttpStream, TheHandlerHearsNothingAfterACompleteAnswer) {
  EchoServer server;
  std::vector<RawClient> clients = open_streams(server, 1);
  server.run([&] { server.held[0]->end_stream(); });
  EXPECT_TRUE(clients[0].read_answer().complete);
  clients[0].vanish();
  EXPECT_TRUE(eventually([&] { return server.all_quiet(); }));
  EXPECT_EQ(server.left, 0);
}

TEST(HttpStream, TheHandlerHearsNothingIfTheClientLeavesBeforeItReadTheEnd) {
  EchoServer server;
  RawClient client(server.port(), 4096);
  client.send(request_text("GET", "/open"));
  ASSERT_TRUE(eventually([&] { return server.held_count == 1; }));
  server.run([&] {
    server.held[0]->write(std::string(16u << 20, 'x'));
    server.held[0]->end_stream();
  });
  EXPECT_EQ(server->stats().exchanges, 1u) << "it is not sent yet";
  client.vanish();
  EXPECT_TRUE(eventually([&] { return server.all_quiet(); }));
  EXPECT_EQ(server.left, 0);
}

TEST(HttpStream, ACallbackMayHoldItsOwnExchange) {
  EchoServer server;
  std::vector<RawClient> clients = open_streams(server, 2);
  std::weak_ptr<HttpExchange> answered, left;
  server.run([&] {
    answered = server.held[0];
    left = server.held[1];
    for (const auto& exchange : server.held) exchange->on_close([exchange] { exchange->write("ignored"); });
    server.held[0]->end_stream();
    server.held.clear();
  });
  EXPECT_TRUE(eventually([&] { return answered.expired(); }));
  EXPECT_FALSE(left.expired());
  clients[0].vanish();
  clients[1].vanish();
  EXPECT_TRUE(eventually([&] { return left.expired() && server.all_quiet(); }));
}

TEST(HttpStream, AnExchangeThatOutlivesItsServerDoesNothing) {
  std::vector<std::shared_ptr<HttpExchange>> kept;
  {
    EchoServer server;
    std::vector<RawClient> clients = open_streams(server, 2);
    clients[0].vanish();
    ASSERT_TRUE(eventually([&] { return server.left == 1; }));
    server.run([&] { kept.swap(server.held); });
    server->stop();
  }
  for (const auto& exchange : kept) {
    EXPECT_TRUE(exchange->closed());
    exchange->write("ignored");
    exchange->on_close([] { ADD_FAILURE(); });
  }
}

TEST(HttpStream, ClientsThatVanishLeaveNothingBehindAndDisturbNobody) {
  const std::size_t count = clients_possible(sanitized() ? 100 : 500);
  EchoServer server;
  std::vector<RawClient> clients = open_streams(server, count);
  auto write_all = [&](const std::string& bytes) {
    server.run([&] {
      for (const auto& exchange : server.held) exchange->write(bytes);
    });
  };
  write_all("two ");
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 5 < 2) clients[i].vanish();
    if (i % 5 == 2) clients[i].leave();
  }
  write_all("three");
  EXPECT_TRUE(eventually([&] { return server.left == static_cast<int>(count / 5 * 3); }));
  server.run([&] {
    for (const auto& exchange : server.held) exchange->end_stream();
  });
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 5 >= 3) {
      ASSERT_EQ(clients[i].read_answer().body, "one two three");
    }
  }
  clients.clear();
  EXPECT_TRUE(eventually([&] { return server.all_quiet(); }));
  EXPECT_EQ(server.left, static_cast<int>(count / 5 * 3));
}

TEST(HttpStream, AThousandStreamsAtOnce) {
  const std::size_t count = clients_possible(sanitized() ? 200 : 1000);
  constexpr int pieces = 20;
  EchoServer server;
  std::vector<RawClient> clients = open_streams(server, count);
  EXPECT_EQ(server->stats().exchanges, count);
  std::string expected = start_text;
  for (int piece = 0; piece < pieces; ++piece) {
    const std::string bytes = fmt::format("data: {}\n\n", piece);
    expected += bytes;
    server->post([&server, bytes] {
      for (const auto& exchange : server.held) exchange->write(bytes);
    });
  }
  server->post([&] {
    for (const auto& exchange : server.held) exchange->end_stream();
  });
  for (RawClient& client : clients) {
    const Answer answer = client.read_answer();
    ASSERT_EQ(answer.body, expected);
    ASSERT_TRUE(answer.complete);
  }
  EXPECT_EQ(server->stats().connections, count) << "kept for the next request";
  clients.clear();
  EXPECT_TRUE(eventually([&] { return server.all_quiet(); }));
  EXPECT_EQ(server.left, 0);
}

TEST(HttpStream, AReaderThatNeverReadsIsCutWhenTooMuchWaits) {
  HttpOptions options;
  options.max_unsent_bytes = 1u << 20;
  EchoServer server(options);
  RawClient client(server.port(), 4096);
  client.send(request_text("GET", "/open"));
  ASSERT_TRUE(eventually([&] { return server.held_count == 1; }));
  const std::size_t written = write_until_closed(server, 64u << 10, 64u << 20);
  EXPECT_GT(written, options.max_unsent_bytes);
  EXPECT_LT(written, 64u << 20);
  EXPECT_TRUE(eventually([&] { return server.left == 1 && server.all_quiet(); }));
}

TEST(HttpStream, AReaderThatNeverReadsIsCutAfterTheWriteTimeout) {
  HttpOptions options;
  options.write_timeout = 200ms;
  options.max_unsent_bytes = 64u << 20;
  EchoServer server(options);
  RawClient client(server.port(), 4096);
  client.send(request_text("GET", "/open"));
  ASSERT_TRUE(eventually([&] { return server.held_count == 1; }));
  server.run([&] { server.held[0]->write(std::string(16u << 20, 'x')); });
  EXPECT_EQ(server.left, 0);
  EXPECT_TRUE(eventually([&] { return server.left == 1 && server.all_quiet(); }));
}

TEST(HttpStream, ALargeAnswerReachesASlowReaderWhole) {
  HttpOptions options;
  options.max_unsent_bytes = 1000;
  EchoServer server(options);
  RawClient client(server.port(), 4096);
  const std::string body(10u << 20, 'y');
  const Answer answer = client.ask(request_text("POST", "/echo", "", body));
  EXPECT_EQ(answer.body.size(), body.size() + std::string("POST /echo ? 10485760\n").size());
  EXPECT_EQ(client.ask(request_text("GET", "/echo")).status, 200);
}

TEST(HttpStream, QueuedWritesArriveInOrder) {
  EchoServer server;
  RawClient client(server.port(), 4096);
  client.send(request_text("GET", "/open"));
  ASSERT_TRUE(eventually([&] { return server.held_count == 1; }));
  std::string expected = start_text;
  server.run([&] {
    for (int i = 0; i < 200'000; ++i) {
      const std::string piece = fmt::format("{},", i);
      expected += piece;
      server.held[0]->write(piece);
    }
    server.held[0]->end_stream();
  });
  const Answer answer = client.read_answer();
  EXPECT_TRUE(answer.complete);
  EXPECT_TRUE(answer.body == expected);
}

TEST(HttpDrain, IdleConnectionsCloseAndRunningStreamsFinish) {
  EchoServer server;
  RawClient idle = server.client();
  EXPECT_EQ(idle.ask(request_text("GET", "/echo")).status, 200);
  std::vector<RawClient> clients = open_streams(server, 1);
  server->begin_drain();
  EXPECT_TRUE(idle.ended());
  server.run([&] {
    server.held[0]->write("two");
    server.held[0]->end_stream();
  });
  const Answer answer = clients[0].read_answer();
  EXPECT_EQ(answer.body, "one two");
  EXPECT_TRUE(answer.complete);
  EXPECT_TRUE(clients[0].ended());
}

TEST(HttpDrain, NewConnectionsAreAnsweredOnce) {
  EchoServer server;
  server->begin_drain();
  RawClient client = server.client();
  EXPECT_TRUE(client.ask(request_text("GET", "/echo")).has("\r\nconnection: close\r\n"));
  EXPECT_TRUE(client.ended());
  client.leave();
  EXPECT_TRUE(eventually([&] { return server.all_quiet(); }));
}

}  // namespace sluice
