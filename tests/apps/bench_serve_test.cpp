#include "apps/bench_serve.h"

#include <gtest/gtest.h>

#include "apps/bench_reply.h"
#include "apps/bench_stream.h"
#include "apps/server_url.h"
#include "base/error.h"

namespace sluice {
namespace {

RequestSample sample(double started, double first, double ended, std::int64_t tokens) {
  RequestSample sample;
  sample.succeeded = true;
  sample.input_tokens = 10;
  sample.output_tokens = tokens;
  sample.started = started;
  sample.first_token = first;
  sample.ended = ended;
  return sample;
}

TEST(ServeStatistics, PercentilesAreInterpolatedAsNumpyDoesIt) {
  std::vector<double> seconds;
  for (int i = 100; i >= 1; --i) seconds.push_back(i / 1000.0);
  const Spread spread = spread_of(seconds);
  EXPECT_NEAR(spread.mean, 50.5, 1e-9);
  EXPECT_NEAR(spread.p50, 50.5, 1e-9);
  EXPECT_NEAR(spread.p90, 90.1, 1e-9);
  EXPECT_NEAR(spread.p99, 99.01, 1e-9);
  EXPECT_EQ(spread_of({0.25}).p99, 250.0);
  EXPECT_EQ(spread_of({}).mean, 0.0);
}

TEST(ServeStatistics, ASummaryCountsTokensAndTimesOfWhatSucceeded) {
  std::vector<RequestSample> samples = {sample(0.0, 0.1, 0.5, 5), sample(1.0, 1.3, 1.3, 1)};
  samples[0].gaps = {0.1, 0.1, 0.2};
  samples.push_back({});  // failed
  samples.back().output_tokens = 1000;
  const LoadSummary summary = summarize(samples, 2.0, {});
  EXPECT_EQ(summary.succeeded, 2);
  EXPECT_EQ(summary.failed, 1);
  EXPECT_EQ(summary.input_tokens, 20);
  EXPECT_EQ(summary.output_tokens, 6);
  EXPECT_DOUBLE_EQ(summary.request_throughput, 1.0);
  EXPECT_DOUBLE_EQ(summary.output_throughput, 3.0);
  EXPECT_DOUBLE_EQ(summary.total_throughput, 13.0);
  EXPECT_NEAR(summary.ttft.mean, 200.0, 1e-9);
  EXPECT_NEAR(summary.tpot.mean, 100.0, 1e-9);  // one token has no time per further token
  EXPECT_NEAR(summary.itl.p50, 100.0, 1e-9);
  EXPECT_NEAR(summary.e2el.mean, 400.0, 1e-9);
  EXPECT_FALSE(summary.goodput.has_value());
}

TEST(ServeStatistics, GoodputCountsRequestsThatMeetEveryBound) {
  const std::vector<RequestSample> samples = {sample(0.0, 0.1, 0.5, 5), sample(0.0, 0.3, 0.5, 5),
                                              sample(0.0, 0.1, 2.1, 5)};
  const auto goodput = [&](std::string_view bounds) { return *summarize(samples, 1.0, parse_goodput(bounds)).goodput; };
  EXPECT_EQ(goodput("ttft:200"), 2.0);
  EXPECT_EQ(goodput("ttft:200,tpot:150"), 1.0);
  EXPECT_EQ(goodput("e2el:1000"), 2.0);
  EXPECT_EQ(goodput("ttft:1,e2el:1"), 0.0);
  for (const char* wrong : {"ttft", "itl:3", "ttft:x", "ttft:-1", "ttft:inf", ",", "ttft:5,,"}) {
    EXPECT_THROW(parse_goodput(wrong), UsageError) << wrong;
  }
}

struct Read {
  std::string body;
  bool complete = false;
  std::size_t taken = 0;
};

Read read_in_two(std::string_view bytes, std::size_t cut) {
  ResponseReader reader;
  Read read;
  read.taken = reader.read(bytes.substr(0, cut), read.body);
  if (read.taken == cut) read.taken += reader.read(bytes.substr(cut), read.body);
  read.complete = reader.complete();
  return read;
}

TEST(ResponseReader, BodiesAreTheSameForEveryCut) {
  const std::string chunked =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding:  Chunked \r\nX: y\r\n\r\n"
      "5\r\nhello\r\n00B;name=value\r\n, \r\n\nworld!\r\n0\r\nTrailer: x\r\n\r\n";
  const std::string sized = "HTTP/1.1 200 OK\ncontent-LENGTH: 16\n\nhello, \r\n\nworld!";
  for (const std::string& response : {chunked, sized}) {
    for (std::size_t cut = 0; cut <= response.size(); ++cut) {
      const Read read = read_in_two(response + "next", cut);
      ASSERT_TRUE(read.complete) << cut;
      ASSERT_EQ(read.body, "hello, \r\n\nworld!") << cut;
      ASSERT_EQ(read.taken, response.size()) << cut;
    }
  }
}

TEST(ResponseReader, SingleBytesAreEnough) {
  const std::string response = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n";
  ResponseReader reader;
  std::string body;
  for (const char& c : response) EXPECT_EQ(reader.read(std::string_view(&c, 1), body), 1u);
  EXPECT_TRUE(reader.complete());
  EXPECT_EQ(body, "hello!");
}

TEST(ResponseReader, ConnectionsAreKeptAsHeadersSay) {
  const auto keeps = [](std::string_view response) {
    ResponseReader reader;
    std::string body;
    reader.read(response, body);
    EXPECT_TRUE(reader.complete());
    return reader.keeps_connection();
  };
  EXPECT_TRUE(keeps("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
  EXPECT_FALSE(keeps("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"));
  EXPECT_FALSE(keeps("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"));
  EXPECT_TRUE(keeps("HTTP/1.1 204 No Content\r\n\r\n"));
}

TEST(ResponseReader, ABodyWithoutALengthEndsWithTheConnection) {
  ResponseReader reader;
  std::string body;
  reader.read("HTTP/1.1 200 OK\r\n\r\nall of", body);
  EXPECT_FALSE(reader.complete());
  reader.read(" it", body);
  reader.end_of_connection();
  EXPECT_TRUE(reader.complete());
  EXPECT_EQ(body, "all of it");
}

TEST(ResponseReader, WhatIsNoResponseIsRefused) {
  const std::string long_header = "HTTP/1.1 200 OK\r\nX: " + std::string(70'000, 'x');
  for (const std::string& wrong :
       {std::string("SSH-2.0-OpenSSH\r\n"), std::string("HTTP/1.1 abc\r\n"),
        std::string("HTTP/1.1 200 OK\r\nno colon\r\n"), std::string("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n"),
        std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n"),
        std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"),
        std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n"), long_header}) {
    ResponseReader reader;
    std::string body;
    EXPECT_THROW(reader.read(wrong, body), RequestError) << wrong.substr(0, 60);
  }
  ResponseReader cut_off;
  std::string body;
  cut_off.read("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", body);
  EXPECT_THROW(cut_off.end_of_connection(), RequestError);
}

TEST(EventReader, EventsAreTheSameForEveryCut) {
  const std::string stream =
      ": ping\n\ndata: {\"a\": 1}\n\nevent: x\r\ndata:two\r\ndata: lines\r\nid: 7\r\n\r\n\n\ndata:\n\ndata: "
      "[DONE]\n\ndata: open";
  const std::vector<std::string> expected = {"{\"a\": 1}", "two\nlines", "", "[DONE]"};
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    EventReader reader;
    std::vector<std::string> events;
    const auto keep = [&](std::string_view data) { events.emplace_back(data); };
    reader.read(std::string_view(stream).substr(0, cut), keep);
    reader.read(std::string_view(stream).substr(cut), keep);
    ASSERT_EQ(events, expected) << cut;
  }
}

TEST(EventReader, SingleBytesAreEnough) {
  EventReader reader;
  std::vector<std::string> events;
  for (const char& c : std::string("data: one\r\n\r\n: x\n\ndata: two\n\n"))
    reader.read(std::string_view(&c, 1), [&](std::string_view data) { events.emplace_back(data); });
  EXPECT_EQ(events, (std::vector<std::string>{"one", "two"}));
}

TEST(EventScan, TextUsageErrorsAndTheEndAreFoundWithoutParsing) {
  const auto has_text = [](std::string_view data) { return scan_event(data).has_text; };
  EXPECT_TRUE(has_text(R"({"choices":[{"text":"a"}]})"));
  EXPECT_TRUE(has_text(R"({"choices": [{"delta" : {"role": "assistant", "content" : "\n"}}]})"));
  EXPECT_TRUE(has_text(R"({"choices":[{"delta":{"content":"","reasoning_content":"hm"}}]})"));
  EXPECT_TRUE(has_text(R"({"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{"}}]}}]})"));
  EXPECT_FALSE(has_text(R"({"choices":[{"delta":{"role":"assistant","content":""}}]})"));
  EXPECT_FALSE(has_text(R"({"choices":[{"text":"","logprobs":{"content":[]}}]})"));
  EXPECT_FALSE(has_text(R"({"id":"\"text\":\"x"})"));
  EXPECT_TRUE(scan_event(R"({"choices":[],"usage":{"prompt_tokens":3}})").has_usage);
  EXPECT_FALSE(scan_event(R"({"choices":[],"usage":null})").has_usage);
  EXPECT_TRUE(scan_event(R"({"error":{"message":"x"}})").has_error);
  EXPECT_TRUE(scan_event("[DONE]").done);
  EXPECT_FALSE(scan_event("{}").done);
}

std::string event(std::string_view json) { return "data: " + std::string(json) + "\n\n"; }

TEST(CompletionReply, TimesAreThoseOfTheEventsAndTokensThoseOfTheUsage) {
  CompletionReply reply(true, 1.0);
  reply.read(200, event(R"({"choices":[{"delta":{"role":"assistant","content":""}}]})"), 1.1);
  reply.read(200, event(R"({"choices":[{"delta":{"content":"one two"}}]})"), 1.5);
  reply.read(200, event(R"({"choices":[{"delta":{"content":" three"}}]})"), 1.75);
  reply.read(200, event(R"({"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}})") + event("[DONE]"), 2.0);
  const RequestSample sample = reply.end(200, "", 2.0);
  EXPECT_TRUE(sample.succeeded) << sample.error;
  EXPECT_DOUBLE_EQ(sample.time_to_first_token(), 0.5);
  EXPECT_EQ(sample.gaps, std::vector<double>{0.25});
  EXPECT_EQ(sample.input_tokens, 7);
  EXPECT_EQ(sample.output_tokens, 3);
  EXPECT_DOUBLE_EQ(sample.time_per_output_token(), 0.25);
}

TEST(CompletionReply, AWholeReplyIsReadForItsUsage) {
  CompletionReply reply(false, 1.0);
  reply.read(200, R"({"choices":[{"text":"x"}],"usage":{"prompt_tokens":7,)", 2.0);
  reply.read(200, R"("completion_tokens":3}})", 3.0);
  const RequestSample sample = reply.end(200, "", 3.0);
  EXPECT_TRUE(sample.succeeded) << sample.error;
  EXPECT_EQ(sample.output_tokens, 3);
  EXPECT_DOUBLE_EQ(sample.latency(), 2.0);
}

TEST(CompletionReply, EachWayToFailIsSaid) {
  const auto failure = [](int status, std::string_view body, const std::string& error = "") {
    CompletionReply reply(true, 0.0);
    reply.read(status, body, 1.0);
    const RequestSample sample = reply.end(status, error, 1.0);
    EXPECT_FALSE(sample.succeeded);
    return sample.error;
  };
  const std::string usage = event(R"({"usage":{"prompt_tokens":7,"completion_tokens":3}})");
  EXPECT_EQ(failure(429, R"({"error":{"message":"the queue\nis full"}})"), "status 429: the queue is full");
  EXPECT_EQ(failure(502, "<html>"), "status 502: <html>");
  EXPECT_EQ(failure(200, usage + event(R"({"error":{"message":"broken"}})")), "an error in the stream: broken");
  EXPECT_EQ(failure(200, event(R"({"choices":[{"text":"x"}]})")), "the stream ended before [DONE]");
  EXPECT_EQ(failure(200, event("[DONE]")), "the reply says no usage, so its tokens cannot be counted");
  EXPECT_EQ(failure(200, usage, "it broke"), "it broke");
}

TEST(ServerUrl, PartsAreTakenApart) {
  const ServerUrl plain = parse_server_url("http://example.org:8000/v1/");
  EXPECT_FALSE(plain.tls);
  EXPECT_EQ(plain.text(), "http://example.org:8000");
  EXPECT_EQ(parse_server_url("localhost").text(), "http://localhost:80");
  EXPECT_EQ(parse_server_url("https://h/proxy").text(), "https://h:443/proxy");
  const ServerUrl six = parse_server_url("http://[::1]:90");
  EXPECT_EQ(six.host, "::1");
  EXPECT_EQ(six.authority(), "[::1]:90");
  for (const char* wrong : {"", "http://", "ftp://h", "http://h:0", "http://h:65536", "http://h:x", "http://h:",
                            "http://[::1", "http://a b", "http://user@h", "http://h?x=1", "http://h\r\nX: y"}) {
    EXPECT_THROW(parse_server_url(wrong), UsageError) << wrong;
  }
}

TEST(ServeReport, RecordsNameModelConcurrencyAndLengths) {
  ServeCase result{"m", 64, 128, 32, 0, true, summarize({sample(0.0, 0.1, 0.5, 5)}, 1.0, parse_goodput("ttft:200"))};
  std::vector<std::string> names;
  for (const BenchRecord& record : serve_records(result)) names.push_back(record.name);
  const auto has = [&](std::string_view name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  EXPECT_TRUE(has("serve.m.c64.in128.out32.output_throughput"));
  EXPECT_TRUE(has("serve.m.c64.in128.out32.p99_ttft"));
  EXPECT_TRUE(has("serve.m.c64.in128.out32.goodput"));
  result.streams = false;
  result.request_rate = 2.5;
  names.clear();
  for (const BenchRecord& record : serve_records(result)) names.push_back(record.name);
  EXPECT_TRUE(has("serve.m.c64.r2.5.in128.out32.whole.mean_e2el"));
  EXPECT_FALSE(has("serve.m.c64.r2.5.in128.out32.whole.mean_ttft"));
}

TEST(ServeReport, TheTextHasTheNamesThatPeopleLookFor) {
  const std::string text =
      serve_text({"m", 64, 128, 32, 0, true, summarize({sample(0.0, 0.1, 0.5, 5)}, 2.0, parse_goodput("ttft:200"))});
  for (const char* line :
       {"Successful requests:                     1 ", "Benchmark duration (s):                  2.00",
        "Total input tokens:                      10", "Total generated tokens:                  5 ",
        "Request throughput (req/s):              0.50", "Request goodput (req/s):                 0.50",
        "Output token throughput (tok/s):         2.50", "Mean TTFT (ms):                          100.00",
        "Median TPOT (ms):                        100.00", "P99 E2EL (ms):                           500.00"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

TEST(BenchCommandLine, KeysAreNotWrittenDown) {
  EXPECT_EQ(bench_command_line({"--serve", "http://h", "--api-key", "secret", "--json"}),
            "sluice bench --serve http://h --api-key KEY --json");
  EXPECT_EQ(bench_command_line({"--api-key=secret"}), "sluice bench --api-key=KEY");
}

}  // namespace
}  // namespace sluice
