//! Every example, run to its end: the same files that `cargo run --example` compiles.

use std::error::Error;

macro_rules! examples {
    ($($name:ident),* $(,)?) => {
        #[path = "../../../examples"]
        mod program {
            $(pub mod $name;)*
        }

        /// The names of the examples that this test runs.
        const NAMES: &[&str] = &[$(stringify!($name)),*];

        $(
            #[test]
            fn $name() -> Result<(), Box<dyn Error + Send + Sync>> {
                program::$name::main().finished()
            }
        )*
    };
}

examples! {
    adaptive_limit_layer,
    axum_admission,
    capacity,
    concurrency_limit,
    fair_queue,
    ingest_client,
    outbox,
    pipeline,
    retry_client,
    router,
    task_store,
    tracker,
    waiting_router,
    windowed_channel,
}

/// Return types of a `main`.
trait Finished {
    fn finished(self) -> Result<(), Box<dyn Error + Send + Sync>>;
}

impl Finished for () {
    fn finished(self) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }
}

impl<E: ToString> Finished for Result<(), E> {
    fn finished(self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.map_err(|error| error.to_string().into())
    }
}

#[test]
fn no_example_is_left_out() -> Result<(), Box<dyn Error>> {
    let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/examples"))?;
    let mut files = Vec::new();
    for entry in folder {
        files.push(entry?.file_name().to_string_lossy().trim_end_matches(".rs").to_owned());
    }
    files.sort();
    assert_eq!(files, NAMES);
    Ok(())
}
