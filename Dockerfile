# Builds `spoonbill` and copies it into a small image with certificates and its own user.
# The tag is the compiler of rust-toolchain.toml, which .dockerignore leaves out.
FROM rust:1.95-bookworm AS build
WORKDIR /src

# This layer compiles the dependencies, with empty crates in place of our own. An edit of the source
# does not change its inputs, so Docker reuses it.
COPY Cargo.toml Cargo.lock ./
COPY .cargo .cargo
COPY defs/Cargo.toml defs/
COPY plugins/Cargo.toml plugins/
COPY engine/Cargo.toml engine/
RUN mkdir defs/src plugins/src engine/src \
    && touch defs/src/lib.rs plugins/src/lib.rs engine/src/lib.rs \
    && echo 'fn main() {}' >engine/src/main.rs \
    && cargo build --release --locked

# `touch` makes the real files newer than the empty crates, else cargo would keep those.
COPY . .
RUN touch defs/src/lib.rs plugins/src/lib.rs engine/src/lib.rs engine/src/main.rs \
    && cargo build --release --locked

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --home-dir /spoonbill spoonbill
COPY --from=build /src/target/release/spoonbill /usr/local/bin/spoonbill
USER spoonbill
WORKDIR /spoonbill
# Mount the definitions at `defs`. Rows appear in `output`, the ledger lies in `data`.
RUN mkdir data output
VOLUME ["/spoonbill/data", "/spoonbill/output"]
ENTRYPOINT ["spoonbill"]
CMD ["run", "defs"]
