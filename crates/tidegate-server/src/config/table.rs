use super::Origin;
use super::errors::ErrorList;
use super::schema::{AnyList, AnySetting, List, ListField, Record, env_name};
use super::sections::*;
use super::value::{Raw, UpstreamTarget};
use std::collections::{BTreeMap, BTreeSet};
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
                $( settings.extend(self.$section.settings()); )*
                settings
            }

            pub fn settings_mut(&mut self) -> Vec<&mut dyn AnySetting> {
                let mut settings = self.node.settings_mut();
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
                    $( $section: self.$section.config(), )*
                    routes: routes(&self.route.entries, errors),
                    upstreams: upstreams(&self.upstream.entries, variables, errors),
                };
                let mut taken = Taken::default();
                config.claims.clients =
                    clients(&self.client.entries, variables, &mut taken, errors);
                config.claims.operators =
                    operators(&self.operator.entries, variables, &mut taken, errors);
                let general = config.routing.thresholds;
                config.routing.models = models(&self.model.entries, general, errors);
                config.tasks.executors = executors(&self.executor.entries, errors);
                config.tasks.runtimes = runtimes(&self.runtime.entries, errors);
                config
            }
        }
    };
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
        /// Level and format of the log.
        log: LogSettings => LogConfig;
    }
    lists {
        /// Servers that requests are forwarded to.
        upstream: UpstreamSettings, 65_536, Some("upstream");
        /// Busy thresholds for the upstreams of a model, instead of those of `[routing]`.
        model: ModelSettings, 1_024, None;
        /// Clients known by a bearer token, with the priority they may claim and their share.
        client: ClientSettings, 10_000, None;
        /// Operators known by a bearer token. With one, administration needs an operator's token.
        operator: OperatorSettings, 1_000, None;
        /// Rules for the priority or model of requests; the first that matches and sets it decides.
        route: RouteSettings, 1_024, None;
        /// Executors elsewhere that run tasks, by the contract of docs/executors.md.
        executor: ExecutorSettings, 1_000, Some("executor-url");
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
    pub fn fill(&mut self) {
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
    }
}
