use clap::Args;
use tidegate::window::Law;

pub const EXAMPLES: &str = "\
Examples:
  tidegate sim --compare law=seed,cubic
  tidegate sim --compare law=cubic --seed 7

Time is virtual and chance comes from the seed: the same seed gives the same table, byte for byte.

Exit codes: 0 ok, 2 wrong flags.";

/// What to simulate.
#[derive(Debug, Args)]
pub struct SimFlags {
    /// Run the ingestion pipeline through bursts, faults and drifts under each of these laws: law=seed,cubic
    #[arg(long, value_name = "WHAT=NAMES", value_parser = comparison)]
    pub compare: LawsToCompare,
    /// Where all chance comes from
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// Laws, each once, in the order in which they were typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LawsToCompare(pub Vec<Law>);

fn comparison(text: &str) -> Result<LawsToCompare, String> {
    let names = text
        .strip_prefix("law=")
        .ok_or("only laws can be compared: write law= and their names, such as law=seed,cubic")?;
    let mut laws = Vec::new();
    for name in names.split(',') {
        let law: Law = name.trim().parse().map_err(|error| format!("{error}"))?;
        if laws.contains(&law) {
            return Err(format!("{law} is there twice"));
        }
        laws.push(law);
    }
    Ok(LawsToCompare(laws))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laws_are_named_once_each_and_in_order() {
        assert_eq!(comparison("law=seed,cubic"), Ok(LawsToCompare(vec![Law::Seed, Law::Cubic])));
        assert_eq!(comparison("law=cubic"), Ok(LawsToCompare(vec![Law::Cubic])));
        assert!(comparison("law=").unwrap_err().contains("there are cubic and seed"));
        assert!(comparison("law=reno").unwrap_err().contains("\"reno\""));
        assert!(comparison("law=seed,seed").unwrap_err().contains("twice"));
        assert!(comparison("stage=parse").unwrap_err().contains("law=seed,cubic"));
    }
}
