use std::time::Duration;

/// Longest time that two live nodes have one name, before the later one gives it up. Twice the time in which a
/// dead node is known to be dead: a node restarted at another address meets its own former address until then.
pub const NAME_CONTEST_MAX: Duration = Duration::from_secs(10);

/// Claim of a node to its name. Of two live nodes with one name the later one is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NameClaim {
    contested_since: Option<Duration>,
}

// === impl NameClaim ===

impl NameClaim {
    /// Takes in the generations of the live members of the own name at other addresses, at this time. False when
    /// the name belongs to one of them.
    ///
    /// The own generation wins against a later one. Against an earlier one it loses, once that has been alive for
    /// [`NAME_CONTEST_MAX`] beside this node.
    #[must_use]
    pub fn observe(
        &mut self,
        own: u64,
        others: impl IntoIterator<Item = u64>,
        now: Duration,
    ) -> bool {
        if !others.into_iter().any(|other| other < own) {
            self.contested_since = None;
            return true;
        }
        let since = *self.contested_since.get_or_insert(now);
        now.saturating_sub(since) < NAME_CONTEST_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_later_of_two_live_nodes_loses_the_name() {
        let (mut first, mut second) = (NameClaim::default(), NameClaim::default());
        for second_of in 0..10 {
            assert!(first.observe(1, [2], at(second_of)), "the first one has it");
            assert!(second.observe(2, [1], at(second_of)), "perhaps it is its own former address");
        }
        assert!(first.observe(1, [2], at(10)));
        assert!(!second.observe(2, [1], at(10)));
    }

    #[test]
    fn a_restart_at_another_address_keeps_the_name() {
        let mut claim = NameClaim::default();
        assert!(claim.observe(2, [1], at(0)) && claim.observe(2, [1], at(4)));
        assert!(claim.observe(2, [], at(5)), "the former address is down");
        assert!(claim.observe(2, [1], at(12)), "another contest begins anew");
        assert!(claim.observe(2, [1], at(21)));
        assert!(!claim.observe(2, [1], at(22)));
    }
}
