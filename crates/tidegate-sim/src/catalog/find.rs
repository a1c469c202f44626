use super::{executors, gateway, pipeline};
use crate::scenario::{Scenario, ScenarioError};

/// Names and texts of all that ship, in the order in which they are worth to be read.
pub fn shipped() -> impl Iterator<Item = (&'static str, &'static str)> {
    let worlds = [gateway::SHIPPED, pipeline::SHIPPED, executors::SHIPPED];
    worlds.into_iter().flatten().copied()
}

/// One of them; `None` when none is called so.
///
/// # Errors
///
/// Never for what ships: a test reads all of them.
pub fn find(name: &str) -> Option<Result<Scenario, ScenarioError>> {
    let (name, text) = shipped().find(|(known, _)| *known == name)?;
    Some(Scenario::read(name, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn all_that_ship_can_be_read_and_are_called_once() {
        let mut names = BTreeSet::new();
        for (name, text) in shipped() {
            let scenario =
                Scenario::read(name, text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(scenario.about.len() <= 120, "{name}: `about` is a line");
            assert!(!scenario.expectations.is_empty(), "{name} expects nothing");
            assert!(names.insert(name), "{name} is there twice");
        }
    }
}
