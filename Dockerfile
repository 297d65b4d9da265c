# Builds the engine, then keeps the binary alone with certificates and a user of its own.
FROM rust:1-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --home-dir /spoonbill spoonbill
COPY --from=build /src/target/release/spoonbill /usr/local/bin/spoonbill
USER spoonbill
WORKDIR /spoonbill
# Mount definitions at defs; rows appear in output, the ledger lives in data.
VOLUME ["/spoonbill/data", "/spoonbill/output"]
ENTRYPOINT ["spoonbill"]
CMD ["run", "defs"]
