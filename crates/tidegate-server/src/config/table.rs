use super::errors::ErrorList;
use super::schema::{AnyList, AnySetting, List, ListField, Record, env_name};
use super::sections::*;
use super::value::{Raw, UpstreamTarget};
use super::{Origin, state_folder};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use tidegate::admission::Role;

/// Environment variable that names the configuration file; the command line reads it.
pub const CONFIG_VARIABLE: &str = "TIDEGATE_CONFIG";

/// Declares the [`Table`] and the [`Config`] that comes of it: sections with their public form, then lists.
macro_rules! table {
    (
        sections { $( #[doc = $sdoc:literal] $section:ident: $S:ty => $Public:ty; )* }
        lists { $( #[doc = $doc:literal] $list:ident: $R:ty, $max:literal, $flag:expr; )* }
    ) => {
        /// Every setting and every list, with the values in force.
        pub struct Table {
            pub node: NodeSettings,
            pub tls: TlsSettings,
            $( pub $section: $S, )*
            $( pub $list: List<$R>, )*
        }

        /// The checked configuration of a node.
        ///
        /// [`Config::default`] is the `gate` preset without upstreams; [`Loader`](super::Loader) builds one from a
        /// file, the environment and flags.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Config {
            /// Role of this node, whose preset gives the limits that are not set. Default `gate`.
            pub role: Role,
            /// True if limits only count what they would refuse. Default false.
            pub dry_run: bool,
            /// Folder of the stores that have no place of their own; `None` if nothing names one. The stores are
            /// then in the working directory.
            pub state_folder: Option<PathBuf>,
            $( #[doc = $sdoc] pub $section: $Public, )*
            /// Rules that give requests a priority or a model; the first that matches decides. Default none.
            pub routes: Vec<RouteRule>,
            /// Servers that requests are forwarded to, 0 … `routing.upstreams_max`. Default none.
            pub upstreams: Vec<UpstreamTarget>,
        }

        impl Table {
            /// The defaults, before presets are applied.
            pub fn new() -> Self {
                Self {
                    node: NodeSettings::new("", &Origin::Default),
                    tls: TlsSettings::new("tls.", &Origin::Default),
                    $( $section: <$S>::new(concat!(stringify!($section), "."), &Origin::Default), )*
                    $( $list: List {
                        field: ListField {
                            key: stringify!($list), doc: $doc.trim_ascii(), max: $max, flag: $flag,
                        },
                        entries: Vec::new(),
                    }, )*
                }
            }

            /// The settings of all sections, in the order of the file.
            pub fn settings(&self) -> Vec<&dyn AnySetting> {
                let mut settings = self.node.settings();
                settings.extend(self.tls.settings());
                $( settings.extend(self.$section.settings()); )*
                settings
            }

            pub fn settings_mut(&mut self) -> Vec<&mut dyn AnySetting> {
                let mut settings = self.node.settings_mut();
                settings.extend(self.tls.settings_mut());
                $( settings.extend(self.$section.settings_mut()); )*
                settings
            }

            pub fn lists(&self) -> Vec<&dyn AnyList> {
                vec![$( &self.$list ),*]
            }

            pub fn lists_mut(&mut self) -> Vec<&mut dyn AnyList> {
                vec![$( &mut self.$list ),*]
            }

            /// The configuration of the values in force, with an error for each entry that is wrong.
            pub fn config(&self, env: &BTreeMap<String, String>, errors: &mut ErrorList) -> Config {
                let reserved = self.env_names();
                let variables = Variables { env, reserved: &reserved };
                let mut config = Config {
                    role: self.node.role.get(),
                    dry_run: self.node.dry_run.get(),
                    state_folder: self.node.state_folder.get(),
                    $( $section: self.$section.config(), )*
                    routes: routes(&self.route.entries, errors),
                    upstreams: upstreams(&self.upstream.entries, variables, errors),
                };
                config.listen.tls = self.listen.data_port().files(&self.tls);
                config.listen.admin_tls = self.listen.admin_port().files(&self.tls);
                config.ingest.frames_tls = self.ingest.frames_port().files(&self.tls);
                config.ingest.lines_tls = self.ingest.lines_port().files(&self.tls);
                config.workers.tls = self.workers.port().files(&self.tls);
                let mut taken = Taken::default();
                config.claims.clients =
                    clients(&self.client.entries, variables, &mut taken, errors);
                config.claims.operators =
                    operators(&self.operator.entries, variables, &mut taken, errors);
                config.workers.identities =
                    worker_identities(&self.worker.entries, variables, &mut taken, errors);
                let general = config.routing.thresholds;
                config.routing.models = models(&self.model.entries, general, errors);
                config.tasks.executors = executors(&self.executor.entries, variables, errors);
                config.tasks.runtimes = runtimes(&self.runtime.entries, errors);
                config.tasks.node_ports = node_ports(&config);
                config
            }
        }
    };
}

/// Ports of the listeners, as far as they are chosen before the start.
fn node_ports(config: &Config) -> BTreeSet<u16> {
    let (listen, ingest) = (&config.listen, &config.ingest);
    let addresses = [
        listen.address,
        listen.admin_address,
        ingest.frames_address,
        ingest.lines_address,
        config.workers.address,
    ];
    addresses.iter().map(SocketAddr::port).filter(|port| *port != 0).collect()
}

table! {
    sections {
        /// Listeners of the gateway.
        listen: ListenSettings => ListenConfig;
        /// Limits on requests in flight.
        admission: AdmissionSettings => AdmissionConfig;
        /// Selection of an upstream, and busy thresholds.
        routing: RoutingSettings => RoutingConfig;
        /// The queue of requests that wait for an upstream.
        queue: QueueSettings => QueueConfig;
        /// Priorities that clients may claim.
        claims: ClaimsSettings => ClaimsConfig;
        /// Forwarding of requests.
        proxy: ProxySettings => ProxyConfig;
        /// Usage records.
        ingest: IngestSettings => IngestConfig;
        /// Tasks.
        tasks: TasksSettings => TasksConfig;
        /// Workers that dial this manager.
        workers: WorkersSettings => WorkersConfig;
        /// Level and format of the log.
        log: LogSettings => LogConfig;
    }
    lists {
        /// Servers that requests are forwarded to.
        upstream: UpstreamSettings, 65_536, Some("upstream");
        /// Busy thresholds for the upstreams of a model, instead of those of `[routing]`.
        model: ModelSettings, 1_024, None;
        /// Clients known by a bearer token or a certificate, with the priority they may claim and their share.
        client: ClientSettings, 10_000, None;
        /// Operators known by a bearer token or a certificate. With one, administration is for operators alone.
        operator: OperatorSettings, 1_000, None;
        /// Rules for the priority or model of requests; the first that matches and sets it decides.
        route: RouteSettings, 1_024, None;
        /// Executors elsewhere that run tasks, by the contract of docs/executors.md.
        executor: ExecutorSettings, 1_000, Some("executor-url");
        /// Tokens of workers that dial this manager. With one, every worker needs a token.
        worker: WorkerSettings, 1_000, None;
        /// Runtimes of the executor in this process, besides the python and sh that are found.
        runtime: RuntimeSettings, 64, None;
    }
}

impl Table {
    pub fn setting_mut(&mut self, key: &str) -> Option<&mut dyn AnySetting> {
        self.settings_mut().into_iter().find(|setting| setting.state().key == key)
    }

    pub fn list_mut(&mut self, key: &str) -> Option<&mut dyn AnyList> {
        self.lists_mut().into_iter().find(|list| list.field().key == key)
    }

    /// The sections of the file, in its order.
    pub fn sections(&self) -> Vec<&str> {
        let settings = self.settings().into_iter();
        let mut sections: Vec<_> =
            settings.filter_map(|setting| setting.state().section()).collect();
        sections.dedup();
        sections
    }

    /// Every key that a file may have outside of lists.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let settings = self.settings().into_iter().map(|setting| setting.state().key.as_str());
        settings.chain(self.lists().into_iter().map(|list| list.field().key))
    }

    /// Every environment variable with a meaning.
    pub fn env_names(&self) -> BTreeSet<String> {
        let settings = self.settings().into_iter();
        let lists = self.lists().into_iter().map(|list| list.field());
        let lists = lists.filter(|list| list.flag.is_some()).map(|list| env_name(list.key));
        let names = settings.flat_map(|setting| setting.state().env_names()).chain(lists);
        names.chain([CONFIG_VARIABLE.to_owned()]).collect()
    }

    /// Applies the presets of the role, and defaults that depend on other settings.
    pub fn fill(&mut self, env: &BTreeMap<String, String>) {
        let role = self.node.role.get();
        for setting in self.settings_mut() {
            setting.fill(role);
        }
        let (global, reserve) =
            (&self.admission.global_limit, &mut self.admission.critical_reserve);
        if global.state.is_given && !reserve.state.is_given {
            reserve.accept(Raw::Untyped(&(global.get() / 10).to_string()));
            reserve.state.origin = Origin::Default;
        }
        self.fill_parts();
        self.fill_state(env);
    }

    /// Moves the stores without a place of their own into the state folder.
    fn fill_state(&mut self, env: &BTreeMap<String, String>) {
        let given = &mut self.node.state_folder;
        if let (true, Some((folder, origin))) =
            (given.state.is_missing(), state_folder::from_env(env))
            && given.accept(Raw::Untyped(&folder.to_string_lossy()))
        {
            given.state.origin = origin;
        }
        let Some(folder) = given.get() else { return };
        let origin = given.state.origin.clone();
        for (store, name) in [
            (&mut self.ingest.store, state_folder::USAGE),
            (&mut self.tasks.store, state_folder::TASKS),
        ] {
            let path = folder.join(name);
            if store.state.is_missing() && store.accept(Raw::Untyped(&path.to_string_lossy())) {
                store.state.origin = origin.clone();
            }
        }
        let (key, path) = (&mut self.tasks.env_key_file, folder.join(state_folder::ENV_KEY));
        if key.state.is_missing() && key.accept(Raw::Untyped(&path.to_string_lossy())) {
            key.state.origin = origin;
        }
    }

    /// Turns ingestion and tasks off behind a gateway to upstreams, unless a layer asks for them by any of their
    /// settings: such a gateway opens no port and runs no code that its operator did not mention.
    fn fill_parts(&mut self) {
        if self.upstream.entries.is_empty() {
            return;
        }
        let is_asked = |section: &str| {
            let settings = self.settings().into_iter().map(AnySetting::state);
            let mut of_section = settings.filter(|state| state.section() == Some(section));
            // A refused value is an intention too; its error is reported.
            of_section.any(|state| !state.is_missing())
        };
        let tasks = is_asked("tasks")
            || is_asked("workers")
            || !self.executor.entries.is_empty()
            || !self.runtime.entries.is_empty();
        let ingest = is_asked("ingest");
        for (enabled, is_asked) in
            [(&mut self.tasks.enabled, tasks), (&mut self.ingest.enabled, ingest)]
        {
            if !is_asked {
                enabled.accept(Raw::Untyped("false"));
            }
        }
    }
}
