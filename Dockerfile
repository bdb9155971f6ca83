# A static binary on an empty image, run by a user without rights, with its
# data on a volume:
#
#   docker build -t reprise .
#   docker run -p 127.0.0.1:4433:4433/udp -e REPRISE_ALLOW_UNAUTHENTICATED=true -v replays:/data reprise
#
# Inside the container the daemon listens on every address. Unless it is told who
# may record it therefore ends with exit code 2 and says so; the command above
# publishes the port to this machine alone. For others, make a token with "reprise
# token --name NAME --append access/tokens", let user 65532 read that file, and:
#
#   docker run -p 4433:4433/udp -e REPRISE_TOKENS=/access/tokens -v ./access:/access:ro -v replays:/data reprise
#
# A folder is mounted, not the file, so that the daemon notices when the file is
# replaced. The fingerprint for clients stands in the ready line and in the volume,
# as tls/fingerprint.
#
# Metrics and listing are on loopback inside the container, for the health check:
# REPRISE_HTTP=0.0.0.0:8433 opens them to its network. Set it as a variable, not as
# a flag, so that the health check knows it too.
#
# docker stop waits 10 s before it kills; with --stop-timeout 45 clients that are
# slow have the whole drain_timeout. Nothing acknowledged is lost either way.
#
# A configuration of your own: -v /path/reprised.toml:/etc/reprise/reprised.toml:ro
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /out/ ./cmd/reprised ./cmd/reprise \
 && mkdir -p /out/data

FROM scratch
COPY --from=build /out/reprised /out/reprise /usr/local/bin/
COPY --from=build --chown=65532:65532 /out/data /data
COPY configs/reprised.toml /etc/reprise/reprised.toml
USER 65532:65532
VOLUME /data
ENV REPRISE_DATA=/data REPRISE_LISTEN=0.0.0.0:4433 REPRISE_HTTP=127.0.0.1:8433
EXPOSE 4433/udp
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s CMD ["/usr/local/bin/reprised", "--health", "--config", "/etc/reprise/reprised.toml"]
ENTRYPOINT ["/usr/local/bin/reprised", "--config", "/etc/reprise/reprised.toml"]
