/// Declares a section of the configuration, or an entry of a list.
///
/// A line `key: Type = spec => field;` is a setting: its key in the file, its type, its `Spec` and the field of
/// the public struct that gets its value; without `=> field` only derived fields use it. The doc comment is
/// what users read. `derived |settings| { … }` adds public fields that are computed from settings. From it come
/// the public struct and its `Record`, whose fields are the keys: a misspelt key doesn't compile.
macro_rules! record {
    (
        $(#[$meta:meta])*
        pub struct $Config:ident from $Settings:ident {
            $(
                #[doc = $doc:literal]
                $key:ident: $T:ty = $spec:expr $(=> $field:ident)?;
            )*
        }
        $(derived |$settings:ident| {
            $( $(#[$dmeta:meta])* $dfield:ident: $D:ty = $derive:expr; )*
        })?
    ) => {
        $(#[$meta])*
        pub struct $Config {
            $($(
                #[doc = $doc]
                #[doc = concat!("\n\nKey `", stringify!($key), "`: `", stringify!($spec), "`.")]
                pub $field: $T,
            )?)*
            $($( $(#[$dmeta])* pub $dfield: $D, )*)?
        }

        impl $Settings {
            /// The public form of the values in force.
            pub fn config(&self) -> $Config {
                $(let $settings = self;)?
                $Config {
                    $($( $field: self.$key.get(), )?)*
                    $($( $dfield: $derive, )*)?
                }
            }
        }

        record! { $Settings { $( #[doc = $doc] $key: $T = $spec; )* } }
    };

    ($Settings:ident { $( #[doc = $doc:literal] $key:ident: $T:ty = $spec:expr; )* }) => {
        pub struct $Settings {
            $( pub $key: $crate::config::schema::Setting<$T>, )*
        }

        impl $crate::config::schema::Record for $Settings {
            fn new(prefix: &str, origin: &$crate::config::Origin) -> Self {
                #[allow(unused_imports, reason = "each record uses some of the kinds")]
                use $crate::config::{schema::*, value::*};
                Self { $( $key: Setting::new((prefix, stringify!($key)), $doc, $spec, origin), )* }
            }

            fn settings(&self) -> Vec<&dyn $crate::config::schema::AnySetting> {
                vec![$( &self.$key ),*]
            }

            fn settings_mut(&mut self) -> Vec<&mut dyn $crate::config::schema::AnySetting> {
                vec![$( &mut self.$key ),*]
            }
        }
    };
}
pub(in crate::config) use record;
