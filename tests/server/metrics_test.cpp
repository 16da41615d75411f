#include "server/metrics.h"

#include <gtest/gtest.h>

#include "server/request_log.h"

namespace sluice {
namespace {

TEST(Histogram, CountsCumulativelyUpToEachBound) {
  Histogram histogram({1.0, 2.5});
  for (const double value : {0.5, 1.0, 2.0, 7.0}) histogram.observe(value);
  std::string text;
  histogram.write(text, "h", "a=\"b\"");
  EXPECT_EQ(text,
            "h_bucket{a=\"b\",le=\"1\"} 2\n"
            "h_bucket{a=\"b\",le=\"2.5\"} 3\n"
            "h_bucket{a=\"b\",le=\"+Inf\"} 4\n"
            "h_sum{a=\"b\"} 10.5\n"
            "h_count{a=\"b\"} 4\n");
}

TEST(Metrics, ShowWhatGatewaysReadBeforeAModelIsLoaded) {
  const std::string text = Metrics().text(nullptr, {}, "some/model");
  for (const char* name :
       {"vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc",
        "vllm:gpu_cache_usage_perc", "vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total",
        "vllm:gpu_prefix_cache_queries_total", "vllm:gpu_prefix_cache_hits_total", "vllm:prompt_tokens_total",
        "vllm:generation_tokens_total", "vllm:num_preemptions_total", "vllm:spec_decode_num_drafts_total",
        "vllm:spec_decode_num_draft_tokens_total", "vllm:spec_decode_num_accepted_tokens_total"}) {
    EXPECT_NE(text.find(std::string("\n") + name + "{model_name=\"some/model\"} 0\n"), std::string::npos) << name;
  }
  for (const char* name : {"time_to_first_token_seconds", "inter_token_latency_seconds", "e2e_request_latency_seconds",
                           "request_queue_time_seconds", "request_prefill_time_seconds", "request_decode_time_seconds",
                           "request_prompt_tokens", "request_generation_tokens", "iteration_tokens_total"}) {
    EXPECT_NE(text.find(std::string("# TYPE vllm:") + name + " histogram\n"), std::string::npos) << name;
    EXPECT_NE(text.find(std::string("\nvllm:") + name + "_count{model_name=\"some/model\"} 0\n"), std::string::npos)
        << name;
  }
  EXPECT_NE(text.find("vllm:cache_config_info{model_name=\"some/model\",block_size=\""), std::string::npos);
}

TEST(Metrics, CountEndsByReasonAndTimesOfThoseThatSucceeded) {
  Metrics metrics;
  metrics.finished(EndKind::length, {100, 300, 1300, 7, 40});
  metrics.finished(EndKind::aborted, {100, 0, 200, 7, 0});
  const std::string text = metrics.text(nullptr, {}, "m");
  EXPECT_NE(text.find("vllm:request_success_total{model_name=\"m\",finished_reason=\"length\"} 1\n"),
            std::string::npos);
  EXPECT_NE(text.find("vllm:request_success_total{model_name=\"m\",finished_reason=\"abort\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find("vllm:e2e_request_latency_seconds_sum{model_name=\"m\"} 1.3\n"), std::string::npos);
  EXPECT_NE(text.find("vllm:request_prefill_time_seconds_sum{model_name=\"m\"} 0.2\n"), std::string::npos);
  EXPECT_NE(text.find("vllm:request_decode_time_seconds_count{model_name=\"m\"} 1\n"), std::string::npos);
}

TEST(RequestLog, WritesOneLineARequest) {
  HttpRequest request;
  request.id = "r1";
  request.method = "POST";
  request.path = "/v1/completions\n\x1b[31m";
  request.peer = "127.0.0.1:9";
  LoggedRequest logged(request);
  logged.status = 200;
  EXPECT_EQ(log_line(logged, LogStyle::text, 12.34), "r1 POST /v1/completions??[31m 200 total=12.3ms");
  logged.outcome = "stop";
  logged.model = "tiny";
  logged.usage.prompt_tokens = 5;
  logged.usage.completion_tokens = 7;
  logged.timings.queued_ms = 1;
  logged.timings.first_token_ms = 2;
  EXPECT_EQ(log_line(logged, LogStyle::text, 12.34),
            "r1 POST /v1/completions??[31m 200 model=tiny prompt=5 cached=0 output=7 reason=stop queued=1.0ms "
            "first=2.0ms total=12.3ms");
  const Json line = parse_json(log_line(logged, LogStyle::json, 12.5), "the line");
  EXPECT_EQ(line["path"], request.path);
  EXPECT_EQ(line["completion_tokens"], 7);
  EXPECT_EQ(line["total_ms"], 12.5);
}

}  // namespace
}  // namespace sluice
