use super::Origin;
use super::errors::ConfigError;

/// Keys of earlier versions, with the keys that took their place; `None` for those that have no successor.
const RENAMED: &[(&str, Option<&str>)] = &[
    ("outbox.concurrency", Some("routing.limit, or limit of an [[upstream]]")),
    ("outbox.max_destinations", Some("routing.upstreams_max")),
    ("outbox.upstreams_max", Some("routing.upstreams_max")),
    ("outbox.queue_size", Some("queue.size")),
    ("outbox.overflow_size", Some("queue.overflow_size")),
    ("outbox.wait_max_ms", Some("queue.wait_max_ms")),
    ("outbox.share", Some("routing.upstream_share")),
    ("routing.low_share", None),
    ("routing.normal_share", None),
    ("routing.load", Some("routing.load_source")),
    ("tasks.ledger", Some("tasks.slot_ledger")),
];

/// Returns the error about a key of an earlier version, which says what took its place.
pub(super) fn renamed_key(key: &str, origin: &Origin) -> Option<ConfigError> {
    let (_, successor) = RENAMED.iter().find(|(old, _)| *old == key)?;
    Some(match successor {
        Some(new) => ConfigError::new(key, origin, "a key that was renamed", *new),
        None => {
            let allowed = "nothing: the queue serves by priority";
            ConfigError::new(key, origin, "a key that is gone", allowed)
        }
    })
}

/// Returns `true` if a section has keys of earlier versions, and perhaps nothing else.
pub(super) fn is_renamed_section(section: &str) -> bool {
    let sections = RENAMED.iter().filter_map(|(old, _)| old.split_once('.'));
    sections.map(|(section, _)| section).any(|old| old == section)
}

/// Returns the keys of earlier versions.
pub(super) fn renamed_keys() -> impl Iterator<Item = &'static str> {
    RENAMED.iter().map(|(old, _)| *old)
}
