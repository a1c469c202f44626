use super::paced_store::{Pace, PacedStore};
use crate::failure::Failure;
use std::fs;
use std::path::PathBuf;
use std::process;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tidegate::window::Stage;
use tidegate_server::config::Config;
use tidegate_server::ingest::{Flushed, Ingest, IngestView};
use tidegate_sim::pipeline::FlowPicture;
use tidegate_sim::scenario::{PipelineWorld, Scenario};

/// Grace time of the ingest server.
const GRACE: Duration = Duration::from_secs(10);

/// Test bed of a pipeline drill: an ingest server on loopback with a store in a temporary folder.
pub struct TestBed {
    ingest: Ingest,
    pub pace: Arc<Pace>,
    window_least: u64,
    folder: Folder,
}

/// Temporary folder, deleted on drop.
struct Folder(PathBuf);

// === impl TestBed ===

impl TestBed {
    pub fn start(scenario: &Scenario, world: &PipelineWorld) -> Result<Self, Failure> {
        let folder = Folder::make()?;
        let mut all = Config::from_toml("")?;
        let config = &mut all.ingest;
        config.frames_address.set_port(0);
        config.lines_address.set_port(0);
        config.store = folder.0.join("store").to_string_lossy().into_owned();
        config.law = world.law;
        config.connections_max = config.connections_max.max(2 * usize::from(world.senders));
        let pace = Arc::new(Pace::new(scenario));
        let paced = Arc::clone(&pace);
        let window_least = config.window_slots_min;
        let ingest = Ingest::start_through(&all, |store| Arc::new(PacedStore::new(store, paced)))
            .map_err(|error| Failure::Runtime(error.to_string()))?;
        Ok(Self { ingest, pace, window_least, folder })
    }

    pub fn view(&self) -> &Arc<IngestView> {
        self.ingest.view()
    }

    /// Last measurement of the pipeline.
    pub fn picture(&self, at: Duration) -> FlowPicture {
        let seen = self.view().pipeline().snapshot();
        let mut windows = [self.window_least; Stage::COUNT];
        let mut queued = [0; Stage::COUNT];
        for part in &seen.stages {
            windows[part.stage.index()] = part.window;
            queued[part.stage.index()] = part.queued;
        }
        FlowPicture {
            at,
            windows,
            queued,
            held_bytes: seen.memory_bytes,
            budget_bytes: seen.budget_bytes,
            window_least: self.window_least,
            level: seen.signal.level,
        }
    }

    /// Shuts the server down and deletes the folder; returns a note if the drain was cut off.
    pub fn end(self) -> Option<String> {
        let flushed = self.ingest.shutdown(GRACE);
        drop(self.folder);
        (flushed == Flushed::Cut).then(|| {
            format!("The ingest server did not drain within {} s and was cut off.", GRACE.as_secs())
        })
    }
}

// === impl Folder ===

impl Folder {
    fn make() -> Result<Self, Failure> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!("tidegate-drill-{}-{}", process::id(), since.as_nanos());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).map_err(Failure::runtime)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that can't be deleted stays in the system's temporary folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}
