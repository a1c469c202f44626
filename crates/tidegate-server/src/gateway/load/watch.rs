use super::{FetchError, Scraped, Scraper, ServerKind, parse_models};
use crate::config::{LoadSource, RoutingConfig};
use crate::gateway::upstream::{Fleet, Upstream};
use std::sync::Arc;
use std::time::Duration;
use tidegate::routing::Pick;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// A page of metrics is some hundred kilobytes at the most.
const PAGE_MAX: usize = 4 * 1024 * 1024;
/// The least time that a server has to answer: one that is busy answers late, and its word is worth the wait.
const PATIENCE: Duration = Duration::from_secs(1);
/// The most between two looks at a server whose metrics nobody needs, or whose pages say nothing of load.
const SELDOM: Duration = Duration::from_secs(15);
/// Between two looks at which models a server has.
const MODELS_EVERY: Duration = Duration::from_secs(15);

/// Asks every upstream for its load and its models, for ever.
pub async fn watch_forever(fleet: Arc<Fleet>, scraper: Scraper, config: RoutingConfig) {
    let (scraper, config) = (Arc::new(scraper), Arc::new(config));
    let mut watches: JoinSet<()> = fleet
        .all()
        .iter()
        .map(|upstream| {
            let watch = Watch {
                upstream: Arc::clone(upstream),
                scraper: Arc::clone(&scraper),
                config: Arc::clone(&config),
                models_due: Instant::now(),
                is_one_of_several: fleet.all().len() > 1,
                has_warned: false,
            };
            watch.run()
        })
        .collect();
    while watches.join_next().await.is_some() {}
}

struct Watch {
    upstream: Arc<Upstream>,
    scraper: Arc<Scraper>,
    config: Arc<RoutingConfig>,
    models_due: Instant,
    /// True if the pick has a choice.
    is_one_of_several: bool,
    /// True if the log tells that a threshold can't be checked here.
    has_warned: bool,
}

// === impl Watch ===

impl Watch {
    async fn run(mut self) {
        if self.config.load_source == LoadSource::Headers {
            return;
        }
        loop {
            let started = Instant::now();
            let was_up = self.upstream.source().problem.is_none();
            let told = self.scrape().await;
            if !was_up && self.upstream.source().problem.is_none() {
                // Who comes back may be another than who left.
                self.models_due = started;
            }
            self.upstream.set_scraped(told);
            self.warn_of_missing_data();
            if started >= self.models_due && !self.upstream.has_configured_models() {
                let answered = self.ask_models().await;
                self.models_due = started + if answered { MODELS_EVERY } else { PATIENCE };
            }
            let every = match told {
                true if self.is_needed() => self.config.scrape_interval,
                // Nobody decides by it yet, and people may still want to see it.
                true => SELDOM.min(self.config.report_ttl / 2),
                false => self.while_unknown(),
            };
            tokio::select! {
                () = sleep(every.saturating_sub(started.elapsed())) => {}
                // A threshold that is set now needs to know the load now.
                () = self.upstream.monitor().thresholds_changed() => {}
            }
        }
    }

    /// Returns true if a decision depends on the load of this upstream.
    fn is_needed(&self) -> bool {
        let monitor = self.upstream.monitor();
        let picks_by_load = match self.config.pick {
            Pick::PowerOfTwo | Pick::LeastLoaded | Pick::Direct => true,
            Pick::RoundRobin | Pick::Random => false,
        };
        self.upstream.finds_limit()
            || (picks_by_load && self.is_one_of_several)
            || monitor.thresholds().iter().any(|(_, thresholds)| !thresholds.are_off())
    }

    /// Warns once of thresholds that can't be checked here. A page that could not be had now says nothing about
    /// that.
    fn warn_of_missing_data(&mut self) {
        if self.upstream.source().problem.is_some() {
            return;
        }
        let missing = self.upstream.monitor().thresholds_without_data(self.upstream.id());
        if missing.is_empty() || self.has_warned {
            self.has_warned &= !missing.is_empty();
            return;
        }
        self.has_warned = true;
        for threshold in missing {
            tracing::warn!(
                upstream = self.upstream.name(),
                kind = self.upstream.source().kind,
                %threshold,
                "the upstream does not report its KV cache: this threshold is not checked there"
            );
        }
    }

    /// A page that could not be had at all may be there soon; one that says nothing of load will go on so.
    fn while_unknown(&self) -> Duration {
        let source = self.upstream.source();
        match source.problem {
            Some(_) if self.was_recognised() => self.config.scrape_interval,
            Some(_) => PATIENCE.max(self.config.scrape_interval),
            None => SELDOM,
        }
    }

    /// Answers whether the page told any load.
    async fn scrape(&self) -> bool {
        let monitor = self.upstream.monitor();
        // What is sent from now on is not in the page.
        let asked_at = monitor.now();
        match self.fetch(&self.config.metrics_path).await {
            Ok(page) => {
                let scraped = Scraped::parse(&page);
                if scraped.ranks.is_empty() && self.was_recognised() {
                    // It told its load before, so it will again: an odd page is no reason to stop asking.
                    self.troubled("its page says nothing of load".to_owned());
                    return false;
                }
                let ranks: Vec<_> = scraped.ranks.keys().map(|rank| *rank as usize).collect();
                for (rank, report) in &scraped.ranks {
                    monitor.report(self.upstream.id(), *rank as usize, *report, asked_at);
                }
                monitor.set_ranks(self.upstream.id(), &ranks);
                self.recognised(scraped.kind, ranks.len());
                !ranks.is_empty()
            }
            Err(error) => {
                self.failed(&error);
                false
            }
        }
    }

    fn recognised(&self, kind: ServerKind, ranks: usize) {
        let news = self.upstream.learn(|source| {
            source.kind = kind.name();
            source.problem = None;
        });
        if news {
            let upstream = self.upstream.name();
            tracing::info!(
                upstream,
                kind = kind.name(),
                ranks,
                "upstream's metrics were recognised"
            );
        }
    }

    fn failed(&self, error: &FetchError) {
        // A server without such a page is no problem of anyone's.
        let absent = matches!(error, FetchError::Status(status) if status.is_client_error());
        if absent && !self.was_recognised() {
            self.upstream.learn(|source| source.problem = None);
        } else {
            self.troubled(error.to_string());
        }
    }

    fn troubled(&self, problem: String) {
        if self.upstream.learn(|source| source.problem = Some(problem.clone())) {
            tracing::warn!(
                upstream = self.upstream.name(),
                problem,
                "upstream's load can't be read"
            );
        }
    }

    fn was_recognised(&self) -> bool {
        self.upstream.source().kind != ServerKind::Unknown.name()
    }

    /// Without an answer that can be read, what was known of its models stays. Answers whether there was one: a
    /// server that is just starting is asked again soon.
    async fn ask_models(&self) -> bool {
        let page = match self.fetch("/v1/models").await {
            Ok(page) => page,
            Err(FetchError::Status(status)) => return status.is_client_error(),
            Err(_) => return false,
        };
        match parse_models(page.as_bytes()) {
            Ok(models) if !models.is_empty() => {
                self.upstream.monitor().set_models(self.upstream.id(), Some(&models));
            }
            Ok(_) => {}
            Err(error) => {
                tracing::debug!(upstream = self.upstream.name(), %error, "its models can't be read");
            }
        }
        true
    }

    async fn fetch(&self, path: &str) -> Result<String, FetchError> {
        let patience = PATIENCE.max(self.config.scrape_interval);
        let fetched = self.scraper.fetch(&self.upstream, path, patience, PAGE_MAX).await?;
        Ok(fetched.text().into_owned())
    }
}
