use super::support::requests;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate::routing::{Ask, BusyThresholds, MonitorConfig, Pick, PushRouter, WorkerMonitor};

fn names(models: &[&str]) -> Vec<String> {
    models.iter().map(ToString::to_string).collect()
}

fn router(by_model: &[(&str, u64)]) -> PushRouter {
    let by_model: BTreeMap<_, _> =
        by_model.iter().map(|(name, most)| (name.to_string(), requests(*most))).collect();
    let config = MonitorConfig { thresholds: requests(5), by_model, ..MonitorConfig::default() };
    PushRouter::new(Arc::new(WorkerMonitor::new(config)), Pick::PowerOfTwo)
}

fn ask(model: &str) -> Ask<'_> {
    Ask { model: Some(model), ..Ask::default() }
}

#[test]
fn a_request_goes_to_who_serves_its_model_and_each_model_has_its_own_thresholds() {
    let router = router(&[("small", 2)]);
    let monitor = router.monitor();
    monitor.add_upstream("a", Some(&names(&["small"])));
    monitor.add_upstream("b", Some(&names(&["large"])));
    assert!(monitor.needs_model());
    let fill = |model| {
        let held: Vec<_> = (0..20).filter_map(|_| router.route(&ask(model)).ok()).collect();
        (held.len(), held.into_iter().map(|held| held.upstream().name().to_owned()).next())
    };
    assert_eq!(fill("small"), (2, Some("a".to_owned())));
    assert_eq!(fill("large"), (5, Some("b".to_owned())), "the default");
}

#[test]
fn one_model_on_all_upstreams_need_not_be_read_from_requests() {
    let router = router(&[("only", 1)]);
    let monitor = router.monitor();
    monitor.add_upstream("a", Some(&names(&["only"])));
    monitor.add_upstream("b", Some(&names(&["only"])));
    assert!(!monitor.needs_model());
    let held: Vec<_> = (0..9).filter_map(|_| router.route(&Ask::default()).ok()).collect();
    assert_eq!(held.len(), 2, "by the thresholds of the only model");
    assert!(!router.any_room());
}

#[test]
fn a_model_that_nobody_lists_goes_to_who_may_serve_anything() {
    let router = router(&[]);
    let monitor = router.monitor();
    monitor.add_upstream("lists", Some(&names(&["m"])));
    let open = monitor.add_upstream("open", None);
    for _ in 0..5 {
        assert_eq!(router.route(&ask("other")).unwrap().upstream().name(), "open");
    }
    // Now it is known, and nobody is left who may serve it: whoever is asked says so itself.
    monitor.set_models(open, Some(&names(&["n"])));
    assert!(router.route(&ask("other")).is_ok());
}

#[test]
fn thresholds_survive_that_upstreams_come_and_go() {
    let router = router(&[]);
    let monitor = router.monitor();
    let id = monitor.add_upstream("a", Some(&names(&["m"])));
    monitor
        .change_thresholds("m", |old| BusyThresholds { active_requests: Some(1), ..old })
        .unwrap();
    monitor.add_upstream("b", Some(&names(&["m"])));
    monitor.remove_upstream(id);
    let held: Vec<_> = (0..9).filter_map(|_| router.route(&ask("m")).ok()).collect();
    assert_eq!(held.len(), 1);
}

#[test]
fn an_unknown_model_is_an_error_that_names_those_there_are() {
    let router = router(&[]);
    router.monitor().add_upstream("a", Some(&names(&["m", "n"])));
    let error = router.monitor().change_thresholds("x", |old| old).unwrap_err();
    assert_eq!(error.to_string(), "there is no model \"x\"; there are: m, n, *");
}

#[test]
fn what_names_no_model_has_thresholds_that_can_be_changed_too() {
    let router = router(&[]);
    router.monitor().add_upstream("a", Some(&names(&["m"])));
    router.monitor().add_upstream("b", Some(&names(&["n"])));
    router.monitor().change_thresholds("*", |_| requests(1)).unwrap();
    let held: Vec<_> = (0..9).filter_map(|_| router.route(&Ask::default()).ok()).collect();
    assert_eq!(held.len(), 2);
}

/// A request for a model that nobody serves is held by the thresholds of `*`, also beside a single model. Once
/// changed they are listed, or nobody would know what to reset.
#[test]
fn changed_thresholds_of_other_models_are_listed_beside_a_single_model() {
    let router = router(&[]);
    let monitor = router.monitor();
    let id = monitor.add_upstream("a", None);
    monitor.change_thresholds("*", |_| requests(0)).unwrap();
    monitor.set_models(id, Some(&names(&["m"])));
    assert!(router.route(&ask("m")).is_ok() && router.route(&ask("other")).is_err());
    let listed: Vec<_> = monitor.thresholds().iter().map(|(model, _)| model.to_string()).collect();
    assert_eq!(listed, ["m", "*"]);
    for model in listed {
        monitor.change_thresholds(&model, |_| requests(9)).unwrap();
    }
    assert!(router.route(&ask("other")).is_ok());
}

#[test]
fn a_model_that_nobody_serves_any_more_makes_room_for_others() {
    let monitor = WorkerMonitor::new(MonitorConfig { models_max: 3, ..MonitorConfig::default() });
    let id = monitor.add_upstream("a", Some(&names(&["keep"])));
    monitor.change_thresholds("keep", |old| old).unwrap();
    for adapter in 0..50 {
        monitor.set_models(id, Some(&names(&[&format!("adapter-{adapter}")])));
    }
    let known: Vec<_> = monitor.models().into_iter().map(|model| model.model).collect();
    assert_eq!(known, ["adapter-49", "keep", "*"]);
}

#[test]
fn the_number_of_models_is_bounded() {
    let config = MonitorConfig { models_max: 3, ..MonitorConfig::default() };
    let monitor = WorkerMonitor::new(config);
    let many: Vec<_> = (0..50).map(|n| format!("m{n}")).collect();
    monitor.add_upstream("a", Some(&many));
    assert_eq!(monitor.models().len(), 4, "three, and those whose model nobody knows");
}
