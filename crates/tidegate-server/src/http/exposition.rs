use std::fmt::{Display, Write};

/// Writes series in Prometheus' text format.
#[derive(Debug, Default)]
pub struct Exposition {
    text: String,
}

/// One metric's series, under its help and type.
#[derive(Debug)]
pub struct Series<'a> {
    out: &'a mut Exposition,
    name: &'static str,
}

// === impl Exposition ===

impl Exposition {
    /// Begins a counter. By convention its name ends in `_total`.
    pub fn counter(&mut self, name: &'static str, help: &str) -> Series<'_> {
        self.begin(name, "counter", help)
    }

    /// Begins a gauge.
    pub fn gauge(&mut self, name: &'static str, help: &str) -> Series<'_> {
        self.begin(name, "gauge", help)
    }

    /// Begins a histogram.
    pub fn histogram(&mut self, name: &'static str, help: &str) -> Series<'_> {
        self.begin(name, "histogram", help)
    }

    /// Everything that was written.
    #[must_use]
    pub fn finish(self) -> String {
        self.text
    }

    fn begin(&mut self, name: &'static str, kind: &str, help: &str) -> Series<'_> {
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
        Series { out: self, name }
    }

    fn line(&mut self, line: impl Display) {
        // Writing to a String can't fail.
        let _ = writeln!(self.text, "{line}");
    }
}

// === impl Series ===

impl Series<'_> {
    /// One value without labels.
    pub fn value(&mut self, value: impl Display) {
        self.suffixed("", &[], value);
    }

    /// One value with labels.
    pub fn with(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.suffixed("", labels, value);
    }

    /// The series of a histogram: cumulative counts by upper bound in seconds, the sum and the count. `counts` has
    /// one element more than there are bounds.
    pub fn distribution(
        &mut self,
        labels: &[(&str, &str)],
        bounds_s: &[f64],
        counts: &[u64],
        sum_s: f64,
    ) {
        let mut below = 0;
        let bounds = bounds_s.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
        for (bound, count) in bounds.zip(counts) {
            below += count;
            let labels: Vec<_> = labels.iter().copied().chain([("le", bound.as_str())]).collect();
            self.suffixed("_bucket", &labels, below);
        }
        self.suffixed("_sum", labels, sum_s);
        self.suffixed("_count", labels, below);
    }

    /// One value of a name that is derived from the metric's, as histograms have.
    pub fn suffixed(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        let name = self.name;
        if labels.is_empty() {
            return self.out.line(format_args!("{name}{suffix} {value}"));
        }
        let labels: Vec<String> =
            labels.iter().map(|(label, text)| format!("{label}=\"{}\"", escaped(text))).collect();
        self.out.line(format_args!("{name}{suffix}{{{}}} {value}", labels.join(",")));
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_stand_under_their_help_and_type_with_escaped_labels() {
        let mut out = Exposition::default();
        let mut series = out.counter("a_total", "What a is.");
        series.value(1);
        series.with(&[("x", "quote \" slash \\ line \n"), ("y", "z")], 2.5);
        assert_eq!(
            out.finish(),
            "# HELP a_total What a is.\n# TYPE a_total counter\na_total 1\n\
             a_total{x=\"quote \\\" slash \\\\ line \\n\",y=\"z\"} 2.5\n"
        );
    }
}
