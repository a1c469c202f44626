use clap::Args;
use serde::Deserialize;
use serde::de::value::{Error as NameError, StrDeserializer};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use tidegate::Sharing;
use tidegate::routing::Pick;
use tidegate::window::Law;
use tidegate_sim::executors::Policy;
use tidegate_sim::gateway::Flaw;
use tidegate_sim::limit::LimitLaw;
use tidegate_sim::replay::Setting;

pub const EXAMPLES: &str = "\
Examples:
  tidegate sim --list
  tidegate sim load_sweep
  tidegate sim retry_storm --seed 7 --html report.html
  tidegate sim low_flood --seeds 200
  tidegate sim capacity_halves --plant upside_down
  tidegate sim --compare pick=power_of_two,round_robin slow_upstream
  tidegate sim --compare sharing=strict,borrow
  tidegate sim --compare law=seed,cubic
  tidegate sim --compare limit=elastic,vegas,gradient2,aimd,static
  tidegate sim --compare law=seed,cubic blocked_store
  tidegate sim --compare placement=pull,semaphore --executors 3,30 --load 0.95
  tidegate sim --compare placement=queue,seed executors_3x3
  tidegate sim --replay decisions.ndjson --set limits.low=100

Time is virtual and random numbers come from the seed: the same seed gives the same report, byte \
for byte. Invariants are checked at every step.

Exit codes: 0 all expectations met, 1 an expectation missed or an invariant violated, \
2 invalid flags or scenario.";

/// Flags of `tidegate sim`.
#[derive(Debug, Args)]
pub struct SimFlags {
    /// Name of a built-in scenario, such as load_sweep, or a scenario file
    pub scenario: Option<String>,
    /// List the built-in scenarios
    #[arg(long, exclusive = true)]
    pub list: bool,
    /// Seed of the random numbers; without it that of the scenario
    #[arg(long, value_name = "N", conflicts_with = "seeds")]
    pub seed: Option<u64>,
    /// Run the seeds 1 to N and print a summary
    #[arg(
        long,
        value_name = "N",
        requires = "scenario",
        conflicts_with_all = ["compare", "html"],
        value_parser = clap::value_parser!(u64).range(1..=1_000_000)
    )]
    pub seeds: Option<u64>,
    /// Run the short form of the scenario
    #[arg(long)]
    pub short: bool,
    /// Print the report as JSON
    #[arg(long, conflicts_with = "compare")]
    pub json: bool,
    /// Write the report with charts to an HTML file
    #[arg(long, value_name = "FILE", conflicts_with = "compare")]
    pub html: Option<PathBuf>,
    /// End at this time; the run before it is unchanged
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub until: Option<f64>,
    /// Omit a fault, by its index in the file from 0; repeatable
    #[arg(long, value_name = "I")]
    pub without_fault: Vec<usize>,
    /// Omit a class, by name; repeatable
    #[arg(long, value_name = "NAME")]
    pub without_class: Vec<String>,
    /// Multiply the rates of all classes by this; gateway scenarios only
    #[arg(long, value_name = "X", value_parser = rate)]
    pub rate: Option<f64>,
    /// Use only the first N upstreams; gateway scenarios only
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub upstreams: Option<u16>,
    /// Plant a defect in the gateway, to test the invariants: raced_limit, shed_critical,
    /// leaked_permit, unbounded_queue, latched_busy, upside_down, ghost_waiter, lost_wakeup
    #[arg(long, value_name = "FLAW", requires = "scenario", conflicts_with = "compare")]
    pub plant: Option<Flaw>,
    /// Compare settings. pick=power_of_two,round_robin,random,least_loaded or sharing=strict,borrow: in a gateway
    /// scenario. law=seed,cubic: window laws of the ingestion pipeline, in bursts, faults and drifts, or in a
    /// pipeline scenario. placement=pull,optimistic,semaphore,queue,reserve,seed: placements of 50 ms tasks on
    /// executors with one slot, or in an executors scenario; seed is the loop that retries until an executor
    /// has room. limit=elastic,vegas,gradient2,aimd,static: laws of an upstream's concurrency limit, over servers
    /// and faults, as shares of the best static limit
    #[arg(long, value_name = "SETTING=NAMES", value_parser = comparison)]
    pub compare: Option<Comparison>,
    /// Replay a recording of `tidegate drill --record` with other limits
    #[arg(long, value_name = "FILE", conflicts_with_all = ["scenario", "compare", "seeds", "html"])]
    pub replay: Option<PathBuf>,
    /// With --replay: another limit (limits.global, limits.high, limits.normal, limits.low or
    /// limits.critical_reserve), sharing=strict or sharing=borrow; repeatable
    #[arg(long, value_name = "NAME=VALUE", requires = "replay")]
    pub set: Vec<Setting>,
    /// With placement= and no scenario: numbers of executors to compare [default: 3]
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(1..=1_000)
    )]
    pub executors: Vec<u32>,
    /// With placement= and no scenario: load as a share of the executors' capacity [default: 0.8]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub load: Option<f64>,
    /// With placement= and no scenario: number of tasks [default: 20000]
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(100..=1_000_000)
    )]
    pub tasks: Option<u64>,
}

/// Settings to compare, without duplicates, in the order typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparison {
    Laws(Vec<Law>),
    Limits(Vec<LimitLaw>),
    Placements(Vec<Policy>),
    Picks(Vec<PickName>),
    Sharings(Vec<SharingName>),
}

/// Selection policy other than direct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PickName(pub Pick);

/// Sharing policy of priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharingName(pub Sharing);

// === impl PickName ===

impl FromStr for PickName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match named(name)? {
            Pick::Direct => Err("direct is for requests that name their upstream".to_owned()),
            pick => Ok(Self(pick)),
        }
    }
}

impl fmt::Display for PickName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        tidegate_sim::gateway::Variant::Pick(self.0).fmt(f)
    }
}

// === impl SharingName ===

impl FromStr for SharingName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        named(name).map(Self)
    }
}

impl fmt::Display for SharingName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        tidegate_sim::gateway::Variant::Sharing(self.0).fmt(f)
    }
}

/// Value by its name in configuration files.
fn named<'a, T: Deserialize<'a>>(name: &'a str) -> Result<T, String> {
    let name: StrDeserializer<'a, NameError> = StrDeserializer::new(name);
    T::deserialize(name).map_err(|error| error.to_string())
}

fn comparison(text: &str) -> Result<Comparison, String> {
    match text.split_once('=') {
        Some(("law", names)) => Ok(Comparison::Laws(each_once(names)?)),
        Some(("limit", names)) => Ok(Comparison::Limits(each_once(names)?)),
        Some(("placement", names)) => Ok(Comparison::Placements(each_once(names)?)),
        Some(("pick", names)) => Ok(Comparison::Picks(each_once(names)?)),
        Some(("sharing", names)) => Ok(Comparison::Sharings(each_once(names)?)),
        _ => Err("expected law=seed,cubic, limit=elastic,vegas, placement=pull,queue,seed, \
                 pick=power_of_two,random or sharing=strict,borrow"
            .to_owned()),
    }
}

fn each_once<T>(names: &str) -> Result<Vec<T>, String>
where
    T: FromStr<Err: fmt::Display> + fmt::Display + PartialEq,
{
    let mut found = Vec::new();
    for name in names.split(',') {
        let one: T = name.trim().parse().map_err(|error: T::Err| error.to_string())?;
        if found.contains(&one) {
            return Err(format!("{one} is named twice"));
        }
        found.push(one);
    }
    Ok(found)
}

fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
    match (0.01..=2.0).contains(&share) {
        true => Ok(share),
        false => Err(format!("{text} is not between 0.01 and 2: 0.8 is four fifths of capacity")),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    within(text, 0.1, 86_400.0)
}

fn rate(text: &str) -> Result<f64, String> {
    within(text, 0.000_001, 1000.0)
}

fn within(text: &str, min: f64, max: f64) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
    match (min..=max).contains(&value) {
        true => Ok(value),
        false => Err(format!("{text} is not between {min} and {max}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate::capacity::Placement;

    #[test]
    fn laws_are_named_once_each_and_in_order() {
        assert_eq!(comparison("law=seed,cubic"), Ok(Comparison::Laws(vec![Law::Seed, Law::Cubic])));
        assert_eq!(comparison("law=cubic"), Ok(Comparison::Laws(vec![Law::Cubic])));
        assert!(comparison("law=").unwrap_err().contains("cubic or seed"));
        assert!(comparison("law=reno").unwrap_err().contains("\"reno\""));
        assert!(comparison("law=seed,seed").unwrap_err().contains("twice"));
        assert!(comparison("stage=parse").unwrap_err().contains("law=seed,cubic"));
    }

    #[test]
    fn placements_are_too_with_the_seeds_loop_among_them() {
        let both = vec![Policy::Ours(Placement::Pull), Policy::Seed];
        assert_eq!(comparison("placement=pull, seed"), Ok(Comparison::Placements(both)));
        assert!(comparison("placement=push").unwrap_err().contains("reserve and seed"));
        assert!(comparison("placement=seed,seed").unwrap_err().contains("twice"));
    }

    #[test]
    fn picks_and_sharing_have_the_names_of_the_configuration() {
        let both = vec![PickName(Pick::PowerOfTwo), PickName(Pick::RoundRobin)];
        assert_eq!(comparison("pick=power_of_two,round_robin"), Ok(Comparison::Picks(both)));
        assert!(comparison("pick=best").unwrap_err().contains("least_loaded"));
        assert!(comparison("pick=direct").unwrap_err().contains("name their upstream"));
        assert!(comparison("sharing=strict,borrow").is_ok());
        assert!(comparison("sharing=all").unwrap_err().contains("`strict` or `borrow`"));
    }

    #[test]
    fn a_load_is_a_share() {
        assert_eq!(share("0.95"), Ok(0.95));
        for wrong in ["0", "80", "NaN", "much"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
