use super::blocking_http;
use super::settings;
use crate::failure::Failure;
use hyper::Uri;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tidegate_server::config::Config;
use tidegate_server::gateway::Gateway;
use tidegate_sim::scenario::{Scenario, Upstreams};
use tidegate_testkit::mock::engine::EngineSettings;
use tidegate_testkit::mock::{MetricsStyle, Mock, MockConfig};

/// Time within which the gateway must be ready.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// Test bed of a gateway drill: a gateway and mock upstreams in this process.
pub struct TestBed {
    gateway: Gateway,
    mocks: Vec<Mock>,
}

// === impl TestBed ===

impl TestBed {
    /// Starts gateway and mocks on free ports and waits until the gateway is ready.
    pub fn start(scenario: &Scenario, connections: usize) -> Result<Self, Failure> {
        let upstreams = scenario.upstreams.as_ref();
        let count = upstreams.map_or(0, |upstreams| upstreams.count);
        let mocks: Vec<Mock> = (0..count)
            .zip(upstreams.into_iter().cycle())
            .map(|(number, upstreams)| Mock::start(mock(number, upstreams)))
            .collect::<Result<_, _>>()
            .map_err(Failure::runtime)?;
        let addresses: Vec<SocketAddr> = mocks.iter().map(Mock::address).collect();
        let text = settings::toml(&scenario.gateway(), &addresses, connections);
        let config = Config::from_toml(&text)
            .map_err(|errors| Failure::Usage(format!("{}: {errors}", scenario.name)))?;
        let gateway = Gateway::start(config).map_err(Failure::runtime)?;
        let test_bed = Self { gateway, mocks };
        test_bed.wait_until_ready()?;
        Ok(test_bed)
    }

    pub fn target(&self) -> Result<Uri, Failure> {
        uri(self.gateway.address())
    }

    pub fn upstreams(&self) -> Result<Vec<Uri>, Failure> {
        self.mocks.iter().map(|mock| uri(mock.address())).collect()
    }

    /// Tokens of the tenants by name.
    pub fn tokens(scenario: &Scenario) -> BTreeMap<String, String> {
        let tenants = scenario.gateway().tenants.into_iter();
        tenants.map(|tenant| (tenant.name.clone(), settings::token(&tenant.name))).collect()
    }

    pub fn end(self) {
        // The gateway ends before its upstreams; otherwise it would count failures.
        self.gateway.shutdown();
    }

    fn wait_until_ready(&self) -> Result<(), Failure> {
        let target = self.target()?;
        let started = Instant::now();
        loop {
            match blocking_http::request(&target, "/health/ready", None) {
                Ok(reply) if reply.status == 200 => return Ok(()),
                answer if started.elapsed() > READY_WITHIN => {
                    let text = format!("the gateway of the test bed is not ready: {answer:?}");
                    return Err(Failure::Runtime(text));
                }
                _ => sleep(Duration::from_millis(20)),
            }
        }
    }
}

fn mock(number: u16, upstreams: &Upstreams) -> MockConfig {
    let defaults = MockConfig::default();
    MockConfig {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        name: format!("upstream-{number}"),
        engine: EngineSettings {
            kv_blocks: u64::from(upstreams.kv_blocks),
            max_running: upstreams.slots as usize,
            max_waiting: upstreams.queue as usize,
            ..defaults.engine
        },
        faults: true,
        metrics: if upstreams.reports { defaults.metrics } else { MetricsStyle::None },
        thrash_above: upstreams.thrash_above.map(|above| above as usize),
        ..defaults
    }
}

fn uri(address: SocketAddr) -> Result<Uri, Failure> {
    let parsed: Result<Uri, hyper::http::uri::InvalidUri> = format!("http://{address}").parse();
    parsed.map_err(Failure::runtime)
}
