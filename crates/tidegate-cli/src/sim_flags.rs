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
use tidegate_sim::replay::Setting;

pub const EXAMPLES: &str = "\
Examples:
  tidegate sim --list
  tidegate sim load_sweep
  tidegate sim retry_storm --seed 7 --html report.html
  tidegate sim low_flood --seeds 200
  tidegate sim capacity_halves --plant upside_down
  tidegate sim --compare pick=power_of_two,round_robin slow_destination
  tidegate sim --compare sharing=strict,borrow
  tidegate sim --compare law=seed,cubic
  tidegate sim --compare law=seed,cubic blocked_store
  tidegate sim --compare placement=pull,semaphore --executors 3,30 --load 0.95
  tidegate sim --compare placement=queue,seed executors_3x3
  tidegate sim --replay decisions.ndjson --set limits.low=100

Time is virtual and chance comes from the seed: the same seed gives the same report, byte for
byte. What must always hold is checked at every step.

Exit codes: 0 all came as expected, 1 an expected range was missed or an invariant broke,
2 wrong flags or scenario.";

/// What to simulate.
#[derive(Debug, Args)]
pub struct SimFlags {
    /// A scenario that ships, such as load_sweep, or a file
    pub scenario: Option<String>,
    /// Says in a line what each scenario that ships is for
    #[arg(long, exclusive = true)]
    pub list: bool,
    /// Where all chance comes from; by default the scenario says
    #[arg(long, value_name = "N", conflicts_with = "seeds")]
    pub seed: Option<u64>,
    /// Run the seeds 1 to N, and sum up
    #[arg(
        long,
        value_name = "N",
        requires = "scenario",
        conflicts_with_all = ["compare", "html"],
        value_parser = clap::value_parser!(u64).range(1..=1_000_000)
    )]
    pub seeds: Option<u64>,
    /// Its short form, which the tests run
    #[arg(long)]
    pub short: bool,
    /// Print the report as JSON
    #[arg(long, conflicts_with = "compare")]
    pub json: bool,
    /// Write the report as a page that opens offline
    #[arg(long, value_name = "FILE", conflicts_with = "compare")]
    pub html: Option<PathBuf>,
    /// End then: what comes before is as it was
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub until: Option<f64>,
    /// Leave out a fault, by its place in the file, counted from 0; can be said again
    #[arg(long, value_name = "I")]
    pub without_fault: Vec<usize>,
    /// Leave out a class, by its name; can be said again
    #[arg(long, value_name = "NAME")]
    pub without_class: Vec<String>,
    /// Multiply the rates of all classes with this; for scenarios of a gateway
    #[arg(long, value_name = "X", value_parser = rate)]
    pub rate: Option<f64>,
    /// Keep the first so many workers; for scenarios of a gateway
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub workers: Option<u16>,
    /// Plant a mistake in the gateway, to see that the checks find it: raced_limit, shed_critical,
    /// leaked_permit, unbounded_line, latched_busy, upside_down
    #[arg(long, value_name = "FLAW", requires = "scenario", conflicts_with = "compare")]
    pub plant: Option<Flaw>,
    /// pick=power_of_two,round_robin,random,least_loaded and sharing=strict,borrow: a scenario of a gateway
    /// with each of these; law=seed,cubic: the ingestion pipeline through bursts, faults and drifts, or a
    /// scenario of a pipeline, under each of these laws; placement=pull,optimistic,semaphore,queue,reserve,seed:
    /// tasks of 50 ms on executors of one slot, or a scenario of executors, under each of these placements, seed
    /// being the loop in which every worker holds its task until an executor has room
    #[arg(long, value_name = "WHAT=NAMES", value_parser = comparison)]
    pub compare: Option<Comparison>,
    /// What other limits would have done to a load that `tidegate drill --record` wrote down
    #[arg(long, value_name = "FILE", conflicts_with_all = ["scenario", "compare", "seeds", "html"])]
    pub replay: Option<PathBuf>,
    /// With --replay: another limit, limits.global, limits.high, limits.normal, limits.low or
    /// limits.critical_reserve, or sharing=strict or sharing=borrow; can be said again
    #[arg(long, value_name = "NAME=VALUE", requires = "replay")]
    pub set: Vec<Setting>,
    /// With placement= and no scenario: so many executors, each of these numbers in turn; 3 by default
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(1..=1_000)
    )]
    pub executors: Vec<u32>,
    /// With placement= and no scenario: what is asked of the executors, as a share of what they can do; 0.8 by
    /// default
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub load: Option<f64>,
    /// With placement= and no scenario: how many tasks arrive; 20,000 by default
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(100..=1_000_000)
    )]
    pub tasks: Option<u64>,
}

/// What is compared: each once, in the order in which they were typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparison {
    Laws(Vec<Law>),
    Placements(Vec<Policy>),
    Picks(Vec<PickName>),
    Sharings(Vec<SharingName>),
}

/// A pick that needs no name in the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PickName(pub Pick);

/// What a priority may use beyond its own limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharingName(pub Sharing);

// === impl PickName ===

impl FromStr for PickName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match named(name)? {
            Pick::Direct => Err("direct is for requests that name their worker".to_owned()),
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

/// What configuration files call so.
fn named<'a, T: Deserialize<'a>>(name: &'a str) -> Result<T, String> {
    let name: StrDeserializer<'a, NameError> = StrDeserializer::new(name);
    T::deserialize(name).map_err(|error| error.to_string())
}

fn comparison(text: &str) -> Result<Comparison, String> {
    match text.split_once('=') {
        Some(("law", names)) => Ok(Comparison::Laws(each_once(names)?)),
        Some(("placement", names)) => Ok(Comparison::Placements(each_once(names)?)),
        Some(("pick", names)) => Ok(Comparison::Picks(each_once(names)?)),
        Some(("sharing", names)) => Ok(Comparison::Sharings(each_once(names)?)),
        _ => Err("laws, placements, picks and sharing can be compared: write law=seed,cubic, \
                  placement=pull,queue,seed, pick=power_of_two,random or sharing=strict,borrow"
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
            return Err(format!("{one} is there twice"));
        }
        found.push(one);
    }
    Ok(found)
}

fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| format!("{text:?} is no number"))?;
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
    let value: f64 = text.parse().map_err(|_| format!("{text:?} is no number"))?;
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
        assert!(comparison("law=").unwrap_err().contains("there are cubic and seed"));
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
        assert!(comparison("pick=direct").unwrap_err().contains("name their worker"));
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
