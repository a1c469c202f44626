use super::{Scenario, ScenarioError};

impl Scenario {
    /// Reads a scenario that is called `name`.
    ///
    /// # Errors
    ///
    /// When the text is no TOML, has an unknown key, or contradicts itself.
    ///
    /// ```
    /// use tidegate_sim::scenario::Scenario;
    ///
    /// let text = r#"
    ///     about = "As much as one upstream can do."
    ///     duration_s = 10
    ///     upstreams = { count = 1, slots = 4, queue = 4 }
    ///     [[class]]
    ///     name = "all of it"
    ///     share = 1.0
    ///     service = { kind = "fixed", ms = 100 }
    /// "#;
    /// let scenario = Scenario::read("one", text)?;
    /// assert_eq!(scenario.capacity_per_s(), Some(40.0));
    ///
    /// let wrong = Scenario::read("one", &text.replace("share", "shares")).unwrap_err();
    /// assert!(wrong.to_string().contains("unknown field `shares`"));
    /// # Ok::<(), tidegate_sim::scenario::ScenarioError>(())
    /// ```
    pub fn read(name: &str, text: &str) -> Result<Self, ScenarioError> {
        let scenario: Self =
            toml::from_str(text).map_err(|error| ScenarioError::Syntax(error.to_string()))?;
        let scenario = Self { name: name.to_owned(), ..scenario };
        let errors = scenario.errors();
        if errors.is_empty() { Ok(scenario) } else { Err(ScenarioError::Invalid(errors)) }
    }
}
