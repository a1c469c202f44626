use std::fmt::Write as _;
use std::net::SocketAddr;
use tidegate_sim::scenario::{GatewayWorld, Tenant};

/// Connections besides those of the load: operators, health checks.
const OTHER_CONNECTIONS: usize = 1024;

/// Gateway configuration of a scenario, as TOML, with these upstreams.
pub fn toml(world: &GatewayWorld, upstreams: &[SocketAddr], connections: usize) -> String {
    let mut text = String::new();
    // A short grace time: requests in flight after a drill are of no interest.
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
            ("critical_reserve", limits.and_then(|limits| toml_value(limits.critical_reserve))),
            ("sharing", toml_value(world.sharing)),
        ],
    );
    section(
        &mut text,
        "routing",
        &[
            ("pick", toml_value(world.pick)),
            ("active_requests_threshold", toml_value(world.active_requests)),
            ("active_decode_blocks_threshold", toml_value(world.active_decode_blocks)),
            ("limit", toml_value(Some(world.limit.unwrap_or_default()))),
            ("upstream_share", toml_value(world.upstream_share)),
        ],
    );
    section(
        &mut text,
        "queue",
        &[
            ("size", toml_value(world.queue)),
            // A scenario sets the total queue length.
            ("overflow_size", world.queue.map(|_| "0".to_owned())),
            ("wait_max_ms", world.wait_max_ms.map(|ms| (ms.ceil() as u64).to_string())),
        ],
    );
    for upstream in upstreams {
        let _ = write!(text, "[[upstream]]\nurl = \"http://{upstream}\"\n");
    }
    for tenant in &world.tenants {
        client(&mut text, tenant);
    }
    text
}

/// Token of a tenant on the test bed. It protects nothing: the gateway listens on loopback while the drill runs.
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

/// Value as TOML; for numbers and words TOML and JSON are the same.
fn toml_value<T: serde::Serialize>(value: Option<T>) -> Option<String> {
    value.and_then(|value| serde_json::to_string(&value).ok())
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_server::config::{Config, TokenDigest};
    use tidegate_sim::scenario::Scenario;

    const TEXT: &str = r#"
        about = "all that there is"
        duration_s = 1
        upstreams = { count = 2, slots = 1, queue = 1 }
        class = [{ name = "a", share = 1, tenant = "acme", service = { kind = "fixed", ms = 1 } }]
        [gateway]
        limits = { global = 40, high = 10, normal = 20, low = 30, critical_reserve = 3 }
        sharing = "borrow"
        pick = "least_loaded"
        limit = 4
        queue = 5
        wait_max_ms = 600.5
        upstream_share = 0.25
        active_requests = 7
        active_decode_blocks = 0.5
        tenant = [{ name = "acme", max_priority = "normal" }]
    "#;

    #[test]
    fn the_gateway_has_the_settings_of_the_scenario() {
        let world = Scenario::read("all", TEXT).unwrap().gateway();
        let upstreams: Vec<SocketAddr> =
            ["127.0.0.1:1", "127.0.0.1:2"].map(|text| text.parse().unwrap()).to_vec();
        let config = Config::from_toml(&toml(&world, &upstreams, 100)).unwrap();
        let limits = config.admission.limits;
        assert_eq!((limits.global_limit, limits.high, limits.normal, limits.low), (40, 10, 20, 30));
        assert_eq!(limits.critical_reserve, 3);
        assert_eq!(format!("{:?}", config.admission.sharing), "Borrow");
        assert_eq!(config.upstreams.len(), 2);
        let digest = TokenDigest::of(token("acme").as_bytes());
        assert_eq!(config.claims.clients[0].token, Some(digest));
        let shown = format!("{config:?}");
        for part in ["LeastLoaded", "Fixed(4)", "601ms", "0.25", "Some(7)", "0.5"] {
            assert!(shown.contains(part), "{part} is not in {shown}");
        }
    }

    #[test]
    fn other_settings_have_their_defaults() {
        let config = Config::from_toml(&toml(&GatewayWorld::default(), &[], 100)).unwrap();
        assert_eq!(config.admission, Config::default().admission);
        assert_eq!(config.queue, Config::default().queue);
    }
}
