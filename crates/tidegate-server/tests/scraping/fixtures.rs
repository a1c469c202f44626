//! One page of each kind of server, in the versions that differ.

use crate::support::{figures, page, pages};
use tidegate::routing::KvUsage;
use tidegate_server::gateway::load::{Scraped, ServerKind};
use tidegate_testkit::promtool::{Verdict, check_metrics};

/// Blocks in use, blocks in all, running, waiting, of rank after rank.
type Expected = [(u64, u64, u64, u64)];

#[track_caller]
fn expect(name: &str, kind: ServerKind, ranks: &Expected) -> Scraped {
    let scraped = Scraped::parse(&page(name));
    assert_eq!((scraped.kind, scraped.skipped), (kind, 0), "{name}");
    let found: Vec<_> = scraped.ranks.iter().map(|(rank, load)| (*rank, figures(load))).collect();
    let expected: Vec<_> = (0..)
        .zip(ranks)
        .map(|(rank, told)| (rank, (Some(told.0), Some(told.1), Some(told.2), Some(told.3))))
        .collect();
    assert_eq!(found, expected, "{name}");
    scraped
}

#[test]
fn vllm() {
    // 0.8731 … of 26,800.
    expect("vllm", ServerKind::Vllm, &[(23_400, 26_800, 23, 7)]);
}

#[test]
fn vllm_with_four_engines_has_four_ranks() {
    let ranks = [
        (26_800, 107_200, 12, 0),
        (100_500, 107_200, 31, 9),
        (0, 107_200, 0, 0),
        (53_600, 107_200, 18, 1),
    ];
    expect("vllm_data_parallel", ServerKind::Vllm, &ranks);
}

#[test]
fn vllm_that_has_no_blocks_yet_is_not_ready_and_not_idle() {
    let scraped = expect("vllm_starting", ServerKind::Vllm, &[(0, 0, 0, 0)]);
    assert_eq!(scraped.ranks[&0].kv(), KvUsage::NotReady);
}

#[test]
fn vllm_that_does_not_tell_its_blocks_is_read_per_mille() {
    expect("vllm_no_totals", ServerKind::Vllm, &[(124, 1_000, 4, 0)]);
}

#[test]
fn vllm_of_the_first_engine_has_no_ranks_and_names_the_model_only_here_and_there() {
    expect("vllm_v0", ServerKind::Vllm, &[(1_379, 2_758, 9, 3)]);
}

#[test]
fn sglang() {
    expect("sglang", ServerKind::Sglang, &[(73_400, 262_144, 14, 2_826)]);
}

#[test]
fn sglang_s_tensor_parallel_mirrors_and_priorities_are_not_added_up() {
    let ranks = [(241_172, 262_144, 16, 5), (13_107, 262_144, 3, 1)];
    expect("sglang_data_parallel", ServerKind::Sglang, &ranks);
}

#[test]
fn tensorrt_llm_and_triton_before_it() {
    let own = expect("trtllm", ServerKind::TrtLlm, &[(4_679, 6_239, 21, 6)]);
    assert_eq!(own.ranks[&0].active_prefill_tokens, Some(8_192));
    let triton = expect("triton_trtllm", ServerKind::TrtLlm, &[(1_248, 6_239, 16, 4)]);
    assert_eq!(triton.ranks[&0].active_prefill_tokens, Some(1_536));
}

#[test]
fn tgi_and_llama_cpp_tell_nothing_of_their_cache() {
    for (name, kind, running, waiting) in
        [("tgi", ServerKind::Tgi, 18, 11), ("llamacpp", ServerKind::LlamaCpp, 4, 2)]
    {
        let scraped = Scraped::parse(&page(name));
        assert_eq!((scraped.kind, scraped.skipped), (kind, 0));
        let load = &scraped.ranks[&0];
        assert_eq!(figures(load), (None, None, Some(running), Some(waiting)), "{name}");
        assert_eq!(load.kv(), KvUsage::Unknown);
    }
}

#[test]
fn llama_cpp_once_told_the_ratio() {
    expect("llamacpp_2024", ServerKind::LlamaCpp, &[(641, 1_000, 4, 2)]);
}

#[test]
fn an_agent_of_ours_goes_before_the_server_whose_page_it_passes_on() {
    let ranks = [(870, 1_000, 31, 5), (12, 1_000, 1, 0)];
    let scraped = expect("tidegate_agent", ServerKind::Tidegate, &ranks);
    assert_eq!(scraped.ranks[&0].active_prefill_tokens, Some(12_000));
    assert_eq!(scraped.ranks[&1].active_prefill_tokens, Some(0));
}

#[test]
fn prometheus_itself_can_read_every_page() {
    for (path, _) in pages() {
        let page = std::fs::read_to_string(&path).unwrap();
        let Verdict { code, complaints } = check_metrics(&page).unwrap();
        // 3 is a matter of taste in names, and these names are others'.
        assert!(matches!(code, Some(0 | 3)), "{}: {code:?} {complaints}", path.display());
    }
}
