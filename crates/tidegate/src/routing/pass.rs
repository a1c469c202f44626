use super::upstream_id::UpstreamId;

/// One search through a queue for the next request that gets a slot.
///
/// A slot may become free while the search goes on, after an urgent request found none and before one further back
/// looks. So a request may only take an upstream that no request before it could use at all; the thread that freed
/// the slot searches again, from the front.
#[derive(Debug, Default)]
pub(super) struct Pass {
    /// The upstreams that are left for the requests further back; `None` for all.
    left: Option<Vec<UpstreamId>>,
}

// === impl Pass ===

impl Pass {
    pub fn allows(&self, id: UpstreamId) -> bool {
        self.left.as_ref().is_none_or(|left| left.contains(&id))
    }

    /// Goes on to the next request. Returns `false` if nothing of `all` is left for it.
    pub fn go_on(
        &mut self,
        all: impl Iterator<Item = UpstreamId>,
        can_use: impl Fn(UpstreamId) -> bool,
    ) -> bool {
        let left = match self.left.take() {
            Some(mut left) => {
                left.retain(|id| !can_use(*id));
                left
            }
            None => all.filter(|id| !can_use(*id)).collect(),
        };
        !self.left.insert(left).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_could_use_is_not_left_for_those_behind_it() {
        let all = || (0..4).map(UpstreamId);
        let allowed = |pass: &Pass| all().filter(|id| pass.allows(*id)).count();
        let mut pass = Pass::default();
        assert_eq!(allowed(&pass), 4);
        assert!(pass.go_on(all(), |id| id.0 > 1), "two are left");
        assert_eq!(allowed(&pass), 2);
        assert!(pass.go_on(all(), |id| id.0 != 1));
        assert!(pass.allows(UpstreamId(1)) && allowed(&pass) == 1);
        assert!(!pass.go_on(all(), |_| true));
        assert_eq!(allowed(&pass), 0);
    }
}
