//! What is made of several series, of missing ones, and of values that are none.

use crate::support::figures;
use tidegate::routing::{KvUsage, LoadReport};
use tidegate_server::gateway::load::{Scraped, ServerKind};

fn only_rank(page: &str) -> LoadReport {
    let scraped = Scraped::parse(page);
    assert_eq!(scraped.ranks.keys().collect::<Vec<_>>(), [&0], "{page}");
    scraped.ranks[&0]
}

#[test]
fn two_models_of_one_rank_add_their_requests_and_the_fuller_cache_speaks() {
    let page = "vllm:num_requests_running{engine=\"0\",model_name=\"a\"} 3\n\
                vllm:num_requests_running{engine=\"0\",model_name=\"b\"} 4\n\
                vllm:num_requests_waiting{engine=\"0\",model_name=\"b\"} 1\n\
                vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"a\"} 0.9\n\
                vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"b\"} 0.2\n";
    assert_eq!(figures(&only_rank(page)), (Some(900), Some(1_000), Some(7), Some(1)));
}

#[test]
fn processes_of_one_engine_are_not_added_up() {
    let page = "sglang:num_running_reqs{tp_rank=\"0\",pid=\"17\"} 8\n\
                sglang:num_running_reqs{tp_rank=\"1\",pid=\"18\"} 8\n\
                sglang:token_usage{tp_rank=\"0\"} 0.5\n\
                sglang:token_usage{tp_rank=\"1\"} 0.51\n";
    assert_eq!(figures(&only_rank(page)), (Some(510), Some(1_000), Some(8), None));
}

#[test]
fn what_is_no_figure_is_not_told_and_not_zero() {
    for value in ["NaN", "-1", "+Inf", "-Inf", "41.5"] {
        let page = format!("vllm:kv_cache_usage_perc {value}\nvllm:num_requests_running 2\n");
        assert_eq!(figures(&only_rank(&page)), (None, None, Some(2), None), "{value}");
    }
    let page = "vllm:kv_cache_usage_perc 0.5\nvllm:num_requests_running NaN\n";
    assert_eq!(figures(&only_rank(page)), (Some(500), Some(1_000), None, None));
    let nothing = Scraped::parse("vllm:kv_cache_usage_perc NaN\n");
    assert_eq!((nothing.kind, nothing.ranks.len()), (ServerKind::Vllm, 0));
}

#[test]
fn a_total_without_a_rank_holds_for_every_rank() {
    let page = "vllm:cache_config_info{num_gpu_blocks=\"200\",block_size=\"16\"} 1\n\
                vllm:kv_cache_usage_perc{engine=\"0\"} 0.5\n\
                vllm:kv_cache_usage_perc{engine=\"1\"} 0.25\n\
                vllm:num_requests_waiting 9\n";
    let ranks = Scraped::parse(page).ranks;
    // Nine wait somewhere, and nobody says with which of the two.
    assert_eq!(figures(&ranks[&0]), (Some(100), Some(200), None, None));
    assert_eq!(figures(&ranks[&1]), (Some(50), Some(200), None, None));
}

#[test]
fn what_names_no_rank_is_the_only_rank_s() {
    let page = "vllm:cache_config_info{num_gpu_blocks=\"62500\"} 1\n\
                vllm:kv_cache_usage_perc 0.10\n\
                vllm:num_requests_running{model_name=\"m\",engine=\"0\"} 2\n";
    assert_eq!(figures(&only_rank(page)), (Some(6_250), Some(62_500), Some(2), None));
}

#[test]
fn no_blocks_are_starting_where_that_is_what_they_mean_and_unset_elsewhere() {
    let starting =
        "tidegate_upstream_kv_total_blocks 0\ntidegate_upstream_active_decode_blocks 0\n";
    assert_eq!(only_rank(starting).kv(), KvUsage::NotReady);
    // It tells 0 until its first request, which it would never get.
    let idle = "sglang:token_usage 0.0\nsglang:max_total_num_tokens 0.0\n";
    assert_eq!(only_rank(idle).kv(), KvUsage::Blocks { active: 0, total: 1_000 });
}

#[test]
fn a_server_that_names_itself_and_tells_nothing_is_known_by_kind() {
    let scraped = Scraped::parse("vllm:prompt_tokens_total 5\n");
    assert_eq!((scraped.kind, scraped.ranks.len(), scraped.skipped), (ServerKind::Vllm, 0, 0));
    for page in ["", "\n", "# EOF\n", "up 1\n", "<html>no</html>\n", "{\"error\":\"no\"}"] {
        let scraped = Scraped::parse(page);
        assert_eq!((scraped.kind, scraped.ranks.len()), (ServerKind::Unknown, 0), "{page}");
    }
}

#[test]
fn a_rank_that_is_no_number_is_skipped_and_counted() {
    let page = "vllm:num_requests_running{engine=\"zero\"} 1\n\
                vllm:num_requests_running{engine=\"-1\"} 1\n\
                vllm:num_requests_running{engine=\"99999999999\"} 1\n\
                vllm:num_requests_running{engine=\"\"} 4\n";
    let scraped = Scraped::parse(page);
    assert_eq!(scraped.skipped, 3);
    assert_eq!(scraped.ranks[&0].running, Some(4));
}

#[test]
fn there_is_a_most_of_ranks_and_what_is_beyond_is_counted() {
    let page: String = (0..10_000)
        .map(|rank| format!("vllm:num_requests_running{{engine=\"{rank}\"}} 1\n"))
        .collect();
    let scraped = Scraped::parse(&page);
    assert_eq!(scraped.ranks.len(), Scraped::RANKS_MAX);
    assert_eq!(scraped.skipped, 10_000 - Scraped::RANKS_MAX);
}

#[test]
fn requests_that_wait_are_added_up_by_reason_where_no_sum_is_told() {
    let by_reason = "vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 8\n\
                     vllm:num_requests_waiting_by_reason{engine=\"0\",model_name=\"m\",reason=\"capacity\"} 3\n\
                     vllm:num_requests_waiting_by_reason{engine=\"0\",model_name=\"m\",reason=\"deferred\"} 2\n";
    assert_eq!(figures(&only_rank(by_reason)), (None, None, Some(8), Some(5)));
    let both = format!("{by_reason}vllm:num_requests_waiting{{engine=\"0\",model_name=\"m\"}} 4\n");
    assert_eq!(figures(&only_rank(&both)), (None, None, Some(8), Some(4)), "the sum is told");
}

#[test]
fn the_size_of_a_block_is_what_the_server_tells() {
    let told = |page: &str| {
        let report = only_rank(page);
        [report.active_decode_blocks, report.kv_total_blocks, report.tokens_per_block]
    };
    let vllm = "vllm:cache_config_info{num_gpu_blocks=\"200\",block_size=\"32\"} 1\n\
                vllm:kv_cache_usage_perc 0.5\n";
    assert_eq!(told(vllm), [Some(100), Some(200), Some(32)]);
    let tokens = "sglang:num_used_tokens 640\nsglang:max_total_num_tokens 6400\n";
    assert_eq!(told(tokens), [Some(640), Some(6_400), Some(1)]);
    let labels =
        format!("{tokens}sglang:cache_config_info{{page_size=\"64\",num_pages=\"100\"}} 1\n");
    assert_eq!(told(&labels), [Some(10), Some(100), Some(64)]);
    let gauges = format!("{tokens}sglang:page_size 64\nsglang:num_pages 100\n");
    assert_eq!(told(&gauges), [Some(10), Some(100), Some(64)]);
    let trtllm = "trtllm_kv_cache_utilization 0.5\ntrtllm_kv_cache_max_blocks 80\n\
                  trtllm_kv_cache_tokens_per_block 32\n";
    assert_eq!(told(trtllm), [Some(40), Some(80), Some(32)]);
}
