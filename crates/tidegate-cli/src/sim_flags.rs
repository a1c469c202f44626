use clap::Args;
use std::fmt;
use std::str::FromStr;
use tidegate::window::Law;
use tidegate_sim::executors::Policy;

pub const EXAMPLES: &str = "\
Examples:
  tidegate sim --compare law=seed,cubic
  tidegate sim --compare law=cubic --seed 7
  tidegate sim --compare placement=pull,queue,seed
  tidegate sim --compare placement=pull,semaphore --executors 3,30 --load 0.95

Time is virtual and chance comes from the seed: the same seed gives the same table, byte for byte.

Exit codes: 0 ok, 2 wrong flags.";

/// What to simulate.
#[derive(Debug, Args)]
pub struct SimFlags {
    /// law=seed,cubic: the ingestion pipeline through bursts, faults and drifts under each of these laws;
    /// placement=pull,optimistic,semaphore,queue,reserve,seed: tasks of 50 ms on executors of one slot under each
    /// of these placements, seed being the loop in which every worker holds its task until an executor has room
    #[arg(long, value_name = "WHAT=NAMES", value_parser = comparison)]
    pub compare: Comparison,
    /// With placement=: so many executors, each of these numbers in turn
    #[arg(
        long,
        value_name = "N,…",
        default_value = "3",
        value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(1..=1_000)
    )]
    pub executors: Vec<u32>,
    /// With placement=: what is asked of the executors, as a share of what they can do
    #[arg(long, value_name = "SHARE", default_value_t = 0.8, value_parser = share)]
    pub load: f64,
    /// With placement=: how many tasks arrive
    #[arg(
        long,
        value_name = "N",
        default_value_t = 20_000,
        value_parser = clap::value_parser!(u64).range(100..=1_000_000)
    )]
    pub tasks: u64,
    /// Where all chance comes from
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// What is compared: each once, in the order in which they were typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparison {
    Laws(Vec<Law>),
    Placements(Vec<Policy>),
}

fn comparison(text: &str) -> Result<Comparison, String> {
    match text.split_once('=') {
        Some(("law", names)) => Ok(Comparison::Laws(each_once(names)?)),
        Some(("placement", names)) => Ok(Comparison::Placements(each_once(names)?)),
        _ => Err("laws and placements can be compared: write law=seed,cubic or \
                  placement=pull,queue,seed"
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
    fn a_load_is_a_share() {
        assert_eq!(share("0.95"), Ok(0.95));
        for wrong in ["0", "80", "NaN", "much"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
