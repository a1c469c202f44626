use std::fmt::Write as _;
use std::net::SocketAddr;
use tidegate_sim::scenario::{GatewayWorld, Tenant};

/// Connections that are not of the load: operators, checks.
const OTHER_CONNECTIONS: usize = 1024;

/// The configuration of a gateway as a scenario has it, in front of these workers.
pub fn toml(world: &GatewayWorld, workers: &[SocketAddr], connections: usize) -> String {
    let mut text = String::new();
    // Nobody waits for what is still in flight after a drill.
    section(
        &mut text,
        "listen",
        &[
            ("address", Some("\"127.0.0.1:0\"".to_owned())),
            ("admin_address", Some("\"127.0.0.1:0\"".to_owned())),
            ("connections_max", Some((connections + OTHER_CONNECTIONS).to_string())),
            ("shutdown_grace_ms", Some("100".to_owned())),
        ],
    );
    let limits = world.limits;
    section(
        &mut text,
        "admission",
        &[
            ("global_limit", limits.map(|limits| limits.global.to_string())),
            ("high_limit", limits.map(|limits| limits.high.to_string())),
            ("normal_limit", limits.map(|limits| limits.normal.to_string())),
            ("low_limit", limits.map(|limits| limits.low.to_string())),
            ("critical_reserve", limits.and_then(|limits| written(limits.critical_reserve))),
            ("sharing", written(world.sharing)),
        ],
    );
    section(
        &mut text,
        "routing",
        &[
            ("pick", written(world.pick)),
            ("active_requests_threshold", written(world.active_requests)),
            ("active_decode_blocks_threshold", written(world.active_decode_blocks)),
        ],
    );
    section(
        &mut text,
        "outbox",
        &[
            ("concurrency", written(world.concurrency)),
            ("queue_size", written(world.queue)),
            // A scenario says how many wait in all.
            ("overflow_size", world.queue.map(|_| "0".to_owned())),
            ("wait_max_ms", world.wait_max_ms.map(|ms| (ms.ceil() as u64).to_string())),
            ("share", written(world.worker_share)),
        ],
    );
    for worker in workers {
        let _ = write!(text, "[[upstream]]\nurl = \"http://{worker}\"\n");
    }
    for tenant in &world.tenants {
        client(&mut text, tenant);
    }
    text
}

/// The token of a tenant at a gateway that a drill started. It guards nothing: the gateway is on loopback, for as
/// long as the drill runs.
pub fn token(tenant: &str) -> String {
    format!("drill-token-of-{tenant}")
}

fn client(text: &mut String, tenant: &Tenant) {
    let (name, token) = (quoted(&tenant.name), quoted(&token(&tenant.name)));
    let _ = write!(
        text,
        "[[client]]\nname = {name}\ntoken = {token}\nmax_priority = \"{}\"\n",
        tenant.max_priority
    );
    if let Some(share) = tenant.share {
        let _ = writeln!(text, "share = {share:?}");
    }
}

fn section(text: &mut String, name: &str, settings: &[(&str, Option<String>)]) {
    // Writing to a String can't fail.
    let _ = writeln!(text, "[{name}]");
    for (key, value) in settings {
        if let Some(value) = value {
            let _ = writeln!(text, "{key} = {value}");
        }
    }
}

/// As TOML has it, which is as JSON has it for numbers and words.
fn written<T: serde::Serialize>(value: Option<T>) -> Option<String> {
    value.and_then(|value| serde_json::to_string(&value).ok())
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_server::config::Config;
    use tidegate_sim::scenario::Scenario;

    const TEXT: &str = r#"
        about = "all that there is"
        duration_s = 1
        workers = { count = 2, places = 1, waiting = 1 }
        class = [{ name = "a", share = 1, tenant = "acme", service = { kind = "fixed", ms = 1 } }]
        [gateway]
        limits = { global = 40, high = 10, normal = 20, low = 30, critical_reserve = 3 }
        sharing = "borrow"
        pick = "least_loaded"
        concurrency = 4
        queue = 5
        wait_max_ms = 600.5
        worker_share = 0.25
        active_requests = 7
        active_decode_blocks = 0.5
        tenant = [{ name = "acme", max_priority = "normal" }]
    "#;

    #[test]
    fn what_a_scenario_sets_is_what_the_gateway_has() {
        let world = Scenario::read("all", TEXT).unwrap().gateway();
        let workers: Vec<SocketAddr> =
            ["127.0.0.1:1", "127.0.0.1:2"].map(|text| text.parse().unwrap()).to_vec();
        let config = Config::from_toml(&toml(&world, &workers, 100)).unwrap();
        let limits = config.admission.limits;
        assert_eq!((limits.global_limit, limits.high, limits.normal, limits.low), (40, 10, 20, 30));
        assert_eq!(limits.critical_reserve, 3);
        assert_eq!(format!("{:?}", config.admission.sharing), "Borrow");
        assert_eq!(config.upstreams.len(), 2);
        assert_eq!(config.claims.clients[0].token, token("acme"));
        let shown = format!("{config:?}");
        for part in ["LeastLoaded", "concurrency: 4", "601ms", "0.25", "Some(7)", "0.5"] {
            assert!(shown.contains(part), "{part} is not in {shown}");
        }
    }

    #[test]
    fn what_it_leaves_open_is_as_by_default() {
        let config = Config::from_toml(&toml(&GatewayWorld::default(), &[], 100)).unwrap();
        assert_eq!(config.admission, Config::default().admission);
        assert_eq!(config.routing, Config::default().routing);
        assert_eq!(config.outbox, Config::default().outbox);
    }
}
