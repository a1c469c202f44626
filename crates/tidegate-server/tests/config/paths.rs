//! The form in which paths are compared with rules.

use proptest::prelude::*;
use tidegate_server::config::NormalPath;

fn normal(path: &str) -> String {
    NormalPath::of(path).as_str().to_owned()
}

#[test]
fn every_way_to_write_a_path_has_one_normal_form() {
    let cases = [
        ("/admin", "/admin"),
        ("//admin", "/admin"),
        ("/%61dmin", "/admin"),
        ("/x/../admin", "/admin"),
        ("/x/%2E%2e/admin", "/admin"),
        ("/./admin", "/admin"),
        ("/x//../admin", "/admin"),
        ("/../../admin", "/admin"),
        ("/admin/", "/admin/"),
        ("/admin/.", "/admin/"),
        ("/admin/x/..", "/admin/"),
        ("/admin/..", "/"),
        ("/..", "/"),
        ("/", "/"),
        ("//", "/"),
        ("/a%2fb", "/a%2Fb"),
        ("/%2561dmin", "/%2561dmin"),
        ("/%zz/%4", "/%zz/%4"),
        ("/%+1", "/%+1"),
        ("/%%361dmin", "/%%361dmin"),
        ("/%6%31dmin", "/%6%31dmin"),
        ("/%//%39", "/%/9"),
        ("/.well-known/a", "/.well-known/a"),
        ("/a/...", "/a/..."),
        ("/é%41", "/éA"),
        ("*", "*"),
        ("", ""),
    ];
    for (path, expected) in cases {
        assert_eq!(normal(path), expected, "{path}");
    }
}

/// Segments as they are in normal paths.
fn segments() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[a-zA-Z0-9_~-]{1,6}", 1..6)
}

proptest! {
    #[test]
    fn any_text_has_a_normal_form_that_stays_as_it_is(path in "(/|%|\\.|2|e|E|f|[a-f]|é|[[:^cntrl:]]){0,24}") {
        let once = normal(&path);
        prop_assert_eq!(&normal(&once), &once);
        prop_assert_eq!(path.starts_with('/'), once.starts_with('/'));
        prop_assert!(once.len() <= path.len().max(1));
        if path.starts_with('/') {
            prop_assert!(!once.contains("//") && !format!("{once}/").contains("/../"), "{}", once);
        }
    }

    #[test]
    fn other_ways_to_write_a_path_are_the_same_path(
        segments in segments(),
        disguises in prop::collection::vec(0..6_u8, 6),
    ) {
        let plain = format!("/{}", segments.join("/"));
        let mut written = String::new();
        for (segment, disguise) in segments.iter().zip(disguises) {
            let escaped: String = segment.bytes().map(|byte| format!("%{byte:02x}")).collect();
            written.push_str(&match disguise {
                0 => format!("/{segment}"),
                1 => format!("//{segment}"),
                2 => format!("/./{segment}"),
                3 => format!("/x/../{segment}"),
                4 => format!("/{escaped}"),
                _ => format!("/y//%2E%2e/{segment}"),
            });
        }
        prop_assert_eq!(normal(&written), plain.clone());
        let same = NormalPath::of(&plain).as_str().as_ptr() == plain.as_ptr();
        prop_assert!(same, "a normal path is not copied");
    }
}
