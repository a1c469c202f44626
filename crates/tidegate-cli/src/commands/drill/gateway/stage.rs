use super::ask;
use super::settings;
use crate::commands::until_signal::failed;
use crate::failure::Failure;
use hyper::Uri;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tidegate_server::config::Config;
use tidegate_server::gateway::Gateway;
use tidegate_server::mock::engine::EngineSettings;
use tidegate_server::mock::{Mock, MockConfig};
use tidegate_sim::scenario::{Scenario, Workers};

/// How long a gateway of one's own may take until it is ready.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// A gateway and workers that a drill has for itself, in this process. They end when it is dropped.
pub struct Stage {
    gateway: Gateway,
    mocks: Vec<Mock>,
}

// === impl Stage ===

impl Stage {
    /// Starts what the scenario says, on free ports, and waits until it is ready.
    pub fn start(scenario: &Scenario, connections: usize) -> Result<Self, Failure> {
        let workers = scenario.workers.as_ref();
        let count = workers.map_or(0, |workers| workers.count);
        let mocks: Vec<Mock> = (0..count)
            .zip(workers.into_iter().cycle())
            .map(|(number, workers)| Mock::start(mock(number, workers)))
            .collect::<Result<_, _>>()
            .map_err(failed)?;
        let addresses: Vec<SocketAddr> = mocks.iter().map(Mock::address).collect();
        let text = settings::toml(&scenario.gateway(), &addresses, connections);
        let config = Config::from_toml(&text)
            .map_err(|mistakes| Failure::Usage(format!("{}: {mistakes}", scenario.name)))?;
        let gateway = Gateway::start(config).map_err(failed)?;
        let stage = Self { gateway, mocks };
        stage.wait_until_ready()?;
        Ok(stage)
    }

    pub fn target(&self) -> Result<Uri, Failure> {
        uri(self.gateway.address())
    }

    pub fn workers(&self) -> Result<Vec<Uri>, Failure> {
        self.mocks.iter().map(|mock| uri(mock.address())).collect()
    }

    /// What its tenants are known by.
    pub fn tokens(scenario: &Scenario) -> BTreeMap<String, String> {
        let tenants = scenario.gateway().tenants.into_iter();
        tenants.map(|tenant| (tenant.name.clone(), settings::token(&tenant.name))).collect()
    }

    pub fn end(self) {
        // The gateway first: without its workers it would only count failures.
        self.gateway.shutdown();
    }

    fn wait_until_ready(&self) -> Result<(), Failure> {
        let target = self.target()?;
        let started = Instant::now();
        loop {
            match ask::ask(&target, "/health/ready", None) {
                Ok(reply) if reply.status == 200 => return Ok(()),
                answer if started.elapsed() > READY_WITHIN => {
                    let text = format!("the drill's own gateway did not get ready: {answer:?}");
                    return Err(Failure::Runtime(text));
                }
                _ => sleep(Duration::from_millis(20)),
            }
        }
    }
}

fn mock(number: u16, workers: &Workers) -> MockConfig {
    let defaults = MockConfig::default();
    MockConfig {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        name: format!("worker-{number}"),
        engine: EngineSettings {
            kv_blocks: u64::from(workers.kv_blocks),
            max_running: workers.places as usize,
            max_waiting: workers.waiting as usize,
            ..defaults.engine
        },
        faults: true,
        ..defaults
    }
}

fn uri(address: SocketAddr) -> Result<Uri, Failure> {
    let parsed: Result<Uri, hyper::http::uri::InvalidUri> = format!("http://{address}").parse();
    parsed.map_err(failed)
}
