# Short names for common commands. Plain cargo works too.

# Run every check of CI.
verify:
    .ci/run

# Apply the fixes of clippy and format the code.
fix:
    cargo clippy --workspace --all-targets --fix --allow-dirty --allow-staged
    cargo fmt --all

# Rewrite the generated pages and the JSON Schema, and accept new snapshots.
bless:
    BLESS=1 INSTA_UPDATE=always cargo test --package spoonbill-defs --lib
    BLESS=1 INSTA_UPDATE=always cargo test --package spoonbill-engine --lib config

# Play the ledger's simulation with SEEDS random seeds.
sim SEEDS="30000":
    SIM_SEEDS={{SEEDS}} cargo test --package spoonbill-engine --lib ledger::sim

# Run the first example.
demo:
    cargo run --release -- run examples/quickstart

# Record the instruction counts that CI compares with.
record:
    cargo build
    bench/smoke/run target/debug/spoonbill --record
