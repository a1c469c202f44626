use tidegate_server::gateway::load::{Samples, Scraped};

/// Reads a metrics page: bounded whatever is in it, and the same with other line ends, comments and blank lines.
pub fn run(input: &[u8]) -> bool {
    let page = String::from_utf8_lossy(input);
    let scraped = Scraped::parse(&page);
    assert!(scraped.ranks.len() <= Scraped::RANKS_MAX);
    assert!(scraped.skipped <= page.lines().count());
    assert!(scraped.ranks.values().all(|report| !report.is_empty()));
    for report in scraped.ranks.values() {
        // The figures that are computed from others are in range too.
        let _ = (report.kv(), report.waiting_blocks(), report.requests());
    }
    for sample in Samples::new(&page) {
        assert!(page.contains(sample.name));
        for label in ["engine", "model_name", "le", "cache_config_info", ""] {
            assert!(sample.label(label).is_none_or(|value| value.len() <= page.len()));
        }
    }
    assert_eq!(Scraped::parse(&page.replace('\n', "\r\n")), scraped, "with other line ends");
    assert_eq!(Scraped::parse(&page.replace('\n', "\n\n# a comment\n")), scraped, "with comments");
    !scraped.ranks.is_empty()
}
