/// Records into the pipeline.
pub(super) const SHIPPED: &[(&str, &str)] = &[];
