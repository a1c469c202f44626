//! The graph of a crate's modules, from the `use` lines of its files.

use super::source::Source;
use std::collections::{BTreeMap, BTreeSet};

/// A module's path below its crate, for example `["gateway", "proxy"]`; empty for the crate itself.
type Module = Vec<String>;

/// The edges between the children of one module, each with a file that draws it.
pub type Edges = BTreeMap<(String, String), String>;

/// The modules of one crate and what each uses.
pub struct ModuleGraph {
    /// The edges between siblings, by their parent.
    by_parent: BTreeMap<Module, Edges>,
}

// === impl ModuleGraph ===

impl ModuleGraph {
    /// Reads the graph of the crate whose files lie in `folder`, such as `crates/tidegate/src/`.
    pub fn of(folder: &str, sources: &[Source]) -> Self {
        let files: Vec<(Module, &Source)> = sources
            .iter()
            .filter_map(|source| Some((module_of(source.name.strip_prefix(folder)?), source)))
            .collect();
        let modules: BTreeSet<&Module> = files.iter().map(|(module, _)| module).collect();
        let mut by_parent: BTreeMap<Module, Edges> = BTreeMap::new();
        for (module, source) in &files {
            for path in used_paths(&source.shipped) {
                let Some(target) = resolve(module, &path, &modules) else { continue };
                let shared = module.iter().zip(&target).take_while(|(a, b)| a == b).count();
                // A module may use what it contains, and what contains it may declare it.
                if shared < module.len() && shared < target.len() {
                    let edge = (module[shared].clone(), target[shared].clone());
                    let edges = by_parent.entry(module[..shared].to_vec()).or_default();
                    edges.entry(edge).or_insert_with(|| source.name.clone());
                }
            }
        }
        Self { by_parent }
    }

    /// Every cycle among siblings, as a sentence with the files that draw it.
    pub fn cycles(&self) -> Vec<String> {
        let mut findings = Vec::new();
        for (parent, edges) in &self.by_parent {
            for cycle in cycles(edges) {
                let drawn = edges
                    .iter()
                    .filter(|((from, to), _)| cycle.contains(from) && cycle.contains(to));
                let drawn: Vec<_> =
                    drawn.map(|((_, to), file)| format!("{file} uses {to}")).collect();
                let parent = if parent.is_empty() { "crate".into() } else { parent.join("::") };
                let names: Vec<_> = cycle.into_iter().collect();
                findings.push(format!("{parent}::{{{}}}: {}", names.join(", "), drawn.join("; ")));
            }
        }
        findings
    }
}

/// Groups of nodes that can all reach each other.
fn cycles(edges: &Edges) -> Vec<BTreeSet<String>> {
    let nodes: BTreeSet<&String> = edges.keys().flat_map(|(from, to)| [from, to]).collect();
    let reach: BTreeMap<&String, BTreeSet<&String>> =
        nodes.iter().map(|node| (*node, reachable(edges, node))).collect();
    let mut groups = BTreeSet::new();
    for node in nodes {
        let group: BTreeSet<String> = reach[node]
            .iter()
            .filter(|other| reach[**other].contains(node))
            .map(|it| (*it).clone())
            .collect();
        if group.len() > 1 {
            groups.insert(group);
        }
    }
    groups.into_iter().collect()
}

fn reachable<'a>(edges: &'a Edges, from: &str) -> BTreeSet<&'a String> {
    let mut found = BTreeSet::new();
    let mut open = vec![from.to_owned()];
    while let Some(node) = open.pop() {
        for (_, to) in edges.keys().filter(|(from, _)| *from == node) {
            if found.insert(to) {
                open.push(to.clone());
            }
        }
    }
    found
}

fn module_of(file: &str) -> Module {
    let mut path: Module = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if matches!(path.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        path.pop();
    }
    path
}

/// The module that a path leads to, if it is one of this crate.
fn resolve(module: &Module, path: &[String], modules: &BTreeSet<&Module>) -> Option<Module> {
    let mut target = match path.first()?.as_str() {
        "crate" => path[1..].to_vec(),
        "self" => [module.as_slice(), &path[1..]].concat(),
        "super" => {
            let up = path.iter().take_while(|segment| *segment == "super").count();
            [&module[..module.len().checked_sub(up)?], &path[up..]].concat()
        }
        child => {
            let inside = [module.as_slice(), &[child.to_owned()]].concat();
            modules.contains(&inside).then(|| [module.as_slice(), path].concat())?
        }
    };
    while !target.is_empty() && !modules.contains(&target) {
        target.pop();
    }
    Some(target)
}

/// Every path that a `use` declaration names, with its groups written out.
fn used_paths(code: &str) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for (offset, _) in code.match_indices("use ") {
        let begins = code[..offset].trim_end_matches(' ').chars().next_back();
        // `pub use`, `pub(crate) use`, or the first word of a statement.
        if !matches!(begins, None | Some('\n' | ';' | '{' | '}' | ')' | 'b' | ']')) {
            continue;
        }
        let declaration = code[offset + 4..].split(';').next().unwrap_or_default();
        expand("", &declaration.split_whitespace().collect::<Vec<_>>().join(" "), &mut paths);
    }
    paths
}

fn expand(prefix: &str, tree: &str, paths: &mut Vec<Vec<String>>) {
    match tree.trim().split_once('{') {
        None => {
            let path = format!("{prefix}{}", tree.trim().split(" as ").next().unwrap_or_default());
            paths.push(path.split("::").map(|part| part.trim().to_owned()).collect());
        }
        Some((head, rest)) => {
            let body = rest.trim_end().strip_suffix('}').unwrap_or(rest);
            for part in split_top(body) {
                expand(&format!("{prefix}{}", head.trim()), part, paths);
            }
        }
    }
}

/// Splits at the commas outside of braces.
fn split_top(body: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0_usize, 0, Vec::new());
    for (index, byte) in body.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(&body[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&body[start..]);
    parts.into_iter().filter(|part| !part.trim().is_empty()).collect()
}

#[cfg(test)]
fn source(name: &str, text: &str) -> Source {
    Source::new(name.into(), text.into())
}

#[test]
fn a_cycle_is_found_at_every_level_and_a_tree_is_none() {
    let sources = [
        source("src/lib.rs", "mod a;\nmod b;\nmod c;"),
        source("src/a/mod.rs", "mod x;\nmod y;\npub use x::X;"),
        source("src/a/x.rs", "use super::y::Y;\nuse crate::b::B;"),
        source("src/a/y.rs", "use crate::{c, a::x::{self, X}};"),
        source("src/b.rs", "use crate::c::C;\n#[cfg(test)]\nmod tests { use crate::a::X; }"),
        source("src/c.rs", "// use crate::a::X;\nuse std::fmt;"),
    ];
    let found = ModuleGraph::of("src/", &sources).cycles();
    assert_eq!(found, ["a::{x, y}: src/a/x.rs uses y; src/a/y.rs uses x"]);
}

#[test]
fn two_way_use_between_folders_is_a_cycle() {
    let sources = [
        source("src/a/mod.rs", "mod x;"),
        source("src/a/x.rs", "pub(crate) use crate::b::B;"),
        source("src/b/mod.rs", "mod y;"),
        source("src/b/y.rs", "use super::super::a::A;"),
    ];
    let found = ModuleGraph::of("src/", &sources).cycles();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("crate::{a, b}"), "{found:?}");
}
