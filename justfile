# Shorthand; plain cargo is enough for everything.

# Everything CI looks at; writes nothing but the target directory.
verify:
    .ci/run

# Formats, and applies what clippy can mend by itself.
fix:
    cargo clippy --workspace --all-targets --fix --allow-dirty --allow-staged
    cargo fmt --all

# Writes generated pages anew (engine/CONFIG.md).
bless:
    BLESS=1 cargo test -p spoonbill-engine config

# Records the instruction counts that CI compares with, from the debug build.
record:
    cargo build
    bench/smoke/run target/debug/spoonbill --record
