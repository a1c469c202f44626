use super::Policy;
use serde::{Deserialize, Serialize};

/// Managers that bring tasks to executors, by each of some placements in turn.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ExecutorsWorld {
    /// Executors, each with one slot.
    pub executors: u32,
    /// Managers, each with its share of the tasks; one by default. The seed's own loop has as many workers as
    /// there are executors.
    #[serde(default = "one")]
    pub managers: u32,
    /// The duration of a task in milliseconds.
    pub task_ms: f64,
    /// The load of the executors at a load of 1, as a share of capacity.
    pub share: f64,
    /// The placement policies, and `seed` for the seed's own loop. Each runs the whole scenario alone.
    #[serde(with = "policy_names")]
    pub placements: Vec<Policy>,
    /// The delay of a message from a manager to an executor, in milliseconds. Only simulated.
    #[serde(default = "half")]
    pub hop_ms: f64,
    /// In a drill all times are so many times as long, and all rates so many times as low: what is asked of a real
    /// machine must be something that it can do.
    #[serde(default = "same")]
    pub drill_slower: f64,
}

fn one() -> u32 {
    1
}

fn half() -> f64 {
    0.5
}

fn same() -> f64 {
    1.0
}

/// Placements are written by their names.
mod policy_names {
    use super::Policy;
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(
        policies: &[Policy],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(policies.iter().map(ToString::to_string))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Policy>, D::Error> {
        let names = Vec::<String>::deserialize(deserializer)?;
        names.iter().map(|name| name.parse().map_err(D::Error::custom)).collect()
    }
}
