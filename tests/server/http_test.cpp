#include "server/http.h"

#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"
#include "server/echo_server.h"

namespace sluice {

using test::Answer;
using test::EchoServer;
using test::eventually;
using test::RawClient;
using test::request_text;

TEST(Http, AnswersWithLengthAndHeadersOfTheHandler) {
  EchoServer server;
  const Answer answer = server.client().ask(request_text("GET", "/echo?a=1&b=%20"));
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "GET /echo ?a=1&b=%20 0\n");
  EXPECT_TRUE(answer.has("http/1.1 200 ok\r\n"));
  EXPECT_TRUE(answer.has("\r\nx-kind: echo\r\n"));
  EXPECT_TRUE(answer.has("\r\ncontent-type: text/plain\r\n"));
  EXPECT_TRUE(answer.has("\r\ndate: "));
  EXPECT_FALSE(answer.has("connection:"));
}

TEST(Http, KeepsTheConnectionForTheNextRequest) {
  EchoServer server;
  RawClient client = server.client();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(client.ask(request_text("POST", "/echo", "", "body")).body, "POST /echo ? 4\nbody");
  }
  EXPECT_EQ(server->stats().accepted, 1u);
  EXPECT_EQ(server->stats().requests, 3u);
}

TEST(Http, AnswersPipelinedRequestsInOrder) {
  EchoServer server;
  RawClient client = server.client();
  std::string requests;
  for (int i = 0; i < 50; ++i) requests += request_text("POST", fmt::format("/{}", i), "", std::string(i + 1, 'x'));
  client.send(requests);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(client.read_answer().body, fmt::format("POST /{} ? {}\n{}", i, i + 1, std::string(i + 1, 'x')));
  }
}

TEST(Http, KeepsWhatComesWhileAnAnswerIsProduced) {
  EchoServer server;
  RawClient client = server.client();
  client.send(request_text("GET", "/hold"));
  ASSERT_TRUE(eventually([&] { return server.held_count == 1; }));
  const std::string second = request_text("POST", "/echo", "", "second");
  for (std::size_t at = 0; at < second.size(); at += 20) {
    client.send(second.substr(at, 20));
    usleep(5000);
  }
  server.run([&] { server.held[0]->send({.status = 200, .content_type = "a/b", .body = "first", .headers = {}}); });
  EXPECT_EQ(client.read_answer().body, "first");
  EXPECT_EQ(client.read_answer().body, "POST /echo ? 6\nsecond");
}

TEST(Http, ReadsARequestThatComesByteByByte) {
  EchoServer server;
  RawClient client = server.client();
  const std::string request =
      "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3;name=value\r\nabc\r\n1\r\nd\r\n0\r\nTrailer: x\r\n\r\n";
  for (const char byte : request) client.send({&byte, 1});
  EXPECT_EQ(client.read_answer().body, "POST /echo ? 4\nabcd");
  EXPECT_EQ(client.ask(request_text("GET", "/echo")).status, 200);
}

TEST(Http, ReadsAnEmptyChunkedBodyThatComesByteByByte) {
  EchoServer server;
  RawClient client = server.client();
  client.send(request_text("POST", "/echo", "Transfer-Encoding: chunked\r\n"));
  for (const char byte : std::string("0\r\n\r\n")) {
    usleep(3000);
    client.send({&byte, 1});
  }
  EXPECT_EQ(client.read_answer().body, "POST /echo ? 0\n");
  EXPECT_EQ(client.ask(request_text("GET", "/echo")).status, 200);
}

TEST(Http, ReadsAChunkedBodyCutAnywhere) {
  EchoServer server;
  RawClient client = server.client();
  const std::string request =
      request_text("POST", "/echo", "Transfer-Encoding: chunked\r\n") + "a\r\n0123456789\r\n0\r\n\r\n";
  for (std::size_t cut = request.size() - 26; cut < request.size(); ++cut) {
    client.send(request.substr(0, cut));
    usleep(3000);
    client.send(request.substr(cut));
    EXPECT_EQ(client.read_answer().body, "POST /echo ? 10\n0123456789") << cut;
  }
}

TEST(Http, TellsAClientThatWaitsToSendItsBody) {
  EchoServer server;
  RawClient client = server.client();
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("abc");
  EXPECT_EQ(client.read_answer().body, "POST /echo ? 3\nabc");
}

TEST(Http, AnswersHeadWithTheLengthButWithoutTheBody) {
  EchoServer server;
  RawClient client = server.client();
  const Answer answer = client.ask(request_text("HEAD", "/echo"));
  EXPECT_TRUE(answer.has("content-length: 15\r\n"));
  EXPECT_EQ(client.ask(request_text("HEAD", "/stream")).status, 200);
  EXPECT_EQ(client.ask(request_text("GET", "/echo")).body, "GET /echo ? 0\n");
}

TEST(Http, A204HasNoBodyAndNoLength) {
  EchoServer server;
  RawClient client = server.client();
  const Answer answer = client.ask(request_text("GET", "/none"));
  EXPECT_EQ(answer.status, 204);
  EXPECT_FALSE(answer.has("content-"));
  EXPECT_EQ(client.ask(request_text("GET", "/echo")).status, 200);
}

TEST(Http, ClosesWhenTheClientAsksForIt) {
  EchoServer server;
  RawClient client = server.client();
  EXPECT_TRUE(client.ask(request_text("GET", "/echo", "Connection: close\r\n")).has("\r\nconnection: close\r\n"));
  EXPECT_TRUE(client.ended());
}

TEST(Http, ClosesWhenTheHandlerAsksForIt) {
  EchoServer server;
  RawClient client = server.client();
  EXPECT_TRUE(client.ask(request_text("GET", "/close")).has("\r\nconnection: close\r\n"));
  EXPECT_TRUE(client.ended());
}

TEST(Http, ClosesAfterHttp10UnlessAskedToKeepTheConnection) {
  EchoServer server;
  RawClient client = server.client();
  EXPECT_TRUE(client.ask("GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").has("\r\nconnection: keep-alive\r\n"));
  EXPECT_EQ(client.ask("GET /echo HTTP/1.0\r\n\r\n").body, "GET /echo ? 0\n");
  EXPECT_TRUE(client.ended());
}

TEST(Http, EchoesASoundRequestIdAndReplacesAnother) {
  EchoServer server;
  RawClient client = server.client();
  EXPECT_TRUE(client.ask(request_text("GET", "/echo", "X-Request-Id: abc-1\r\n")).has("\r\nx-request-id: abc-1\r\n"));
  for (const std::string& bad :
       {std::string("a b"), std::string("a\"b"), std::string(129, 'a'), std::string("\xc3\xa9")}) {
    const Answer answer = client.ask(request_text("GET", "/echo", "X-Request-Id: " + bad + "\r\n"));
    EXPECT_TRUE(answer.has("\r\nx-request-id: ")) << bad;
    EXPECT_FALSE(answer.has("x-request-id: " + bad + "\r\n")) << bad;
  }
}

TEST(Http, DecodesThePathAndTakesTheAbsoluteForm) {
  EchoServer server;
  RawClient client = server.client();
  EXPECT_EQ(client.ask(request_text("GET", "/a%20b%2Fc?d%20e")).body, "GET /a b/c ?d%20e 0\n");
  EXPECT_EQ(client.ask(request_text("GET", "http://host:80/x?y")).body, "GET /x ?y 0\n");
  EXPECT_EQ(client.ask(request_text("OPTIONS", "*")).body, "OPTIONS * ? 0\n");
}

TEST(Http, AHandlerThatThrowsOrForgetsAnswers500) {
  EchoServer server;
  RawClient client = server.client();
  for (const char* path : {"/throw", "/drop"}) {
    const Answer answer = client.ask(request_text("GET", path));
    EXPECT_EQ(answer.status, 500) << path;
    EXPECT_EQ(Json::parse(answer.body)["error"]["type"], "server_error");
  }
}

TEST(Http, AnExchangeDroppedOnAnotherThreadAnswers500) {
  EchoServer server;
  RawClient client = server.client();
  client.send(request_text("GET", "/hold"));
  ASSERT_TRUE(eventually([&] { return server.held_count == 1; }));
  std::vector<std::shared_ptr<HttpExchange>> taken;
  server.run([&] { taken.swap(server.held); });
  taken.clear();
  EXPECT_EQ(client.read_answer().status, 500);
}

TEST(Http, HeadersOfTheHandlerCannotEndTheHead) {
  HttpOptions options;
  options.port = 0;
  HttpServer server(options, [](auto exchange) {
    exchange->add_header("X-Added", "yes");
    exchange->send({.status = 200, .content_type = "a/b", .body = "", .headers = {{"X-Bad", "a\r\nX-Split: b"}}});
  });
  server.start();
  const Answer answer = RawClient(server.port()).ask(request_text("GET", "/"));
  EXPECT_TRUE(answer.has("\r\nx-bad: a  x-split: b\r\n"));
  EXPECT_TRUE(answer.has("\r\nx-added: yes\r\n"));
}

TEST(Http, APortThatIsTakenIsALoadError) {
  EchoServer server;
  HttpOptions options;
  options.port = server.port();
  try {
    HttpServer second(options, [](auto) {});
    FAIL() << "two servers on one port";
  } catch (const LoadError& error) {
    EXPECT_NE(std::string(error.what()).find(fmt::format("127.0.0.1:{}", server.port())), std::string::npos)
        << error.what();
  }
}

TEST(Http, AnAddressThatIsNoneIsALoadError) {
  HttpOptions options;
  options.host = "300.1.2.3";
  EXPECT_THROW(HttpServer(options, [](auto) {}), LoadError);
}

TEST(Http, TasksRunOnTheEventThreadAndAreDestroyedAfterStop) {
  EchoServer server;
  std::thread::id here = std::this_thread::get_id(), there;
  server.run([&] { there = std::this_thread::get_id(); });
  EXPECT_NE(there, here);
  std::atomic<bool> later = false;
  server->post_after(std::chrono::milliseconds(20), [&] { later = true; });
  EXPECT_TRUE(eventually([&] { return later.load(); }));

  auto token = std::make_shared<int>(0);
  server->post_after(std::chrono::hours(1), [token] { ADD_FAILURE(); });
  server->stop();
  server->post([token] { ADD_FAILURE(); });
  server->stop();
  EXPECT_EQ(token.use_count(), 1);
}

TEST(Http, ATaskThatThrowsStopsNothing) {
  EchoServer server;
  server->post([] { throw std::runtime_error("as it was asked to"); });
  EXPECT_EQ(server.client().ask(request_text("GET", "/echo")).status, 200);
}

TEST(Http, StopTellsHandlersThatTheirClientsAreGone) {
  EchoServer server;
  RawClient client = server.client();
  client.send(request_text("GET", "/open"));
  EXPECT_TRUE(client.read_until("one ").ends_with("one "));
  server->stop();
  EXPECT_EQ(server.left, 1);
  EXPECT_TRUE(server.held[0]->closed());
  server.held[0]->write("ignored");
  server.held.clear();
  EXPECT_TRUE(server.all_quiet());
}

}  // namespace sluice
