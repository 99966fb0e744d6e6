# The server of this repository. `docker build --target live .` builds it for real sales, without the sandbox; `--target sandbox` for trying it.
#   docker run --read-only --tmpfs /tmp -v coinslot:/var/lib/coinslot -p 127.0.0.1:8402:8402 <image>
# The base image has an exact tag. To pin it, add the digest from your registry: node:24.21.0-slim@sha256:…

FROM node:24.21.0-slim AS manifests
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY handlers/package.json handlers/
COPY packages/sandbox/package.json packages/sandbox/

FROM manifests AS build
RUN npm ci --include=dev --no-progress
COPY . .
RUN npm run build && find dist -name "*.map" -delete

FROM manifests AS live-packages
RUN npm ci --omit=dev --workspace=handlers --include-workspace-root --no-progress

FROM manifests AS sandbox-packages
RUN npm ci --omit=dev --no-progress

FROM node:24.21.0-slim AS server
ENV NODE_ENV=production HOST=0.0.0.0 STATE_DIR=/var/lib/coinslot
WORKDIR /app
RUN install -d -m 700 -o node -g node /var/lib/coinslot
COPY --from=build /app/package.json /app/openapi.yaml /app/LICENSE ./
COPY --from=build /app/docs docs
COPY --from=build /app/generated generated
COPY --from=build /app/handlers handlers
COPY --from=build /app/packages packages
COPY --from=build /app/src src
COPY --from=build /app/dist dist
USER 1000:1000
EXPOSE 8402
# Runs inside the container, where the admin listener is on loopback.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.ADMIN_PORT || 8404}/ready`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "dist/src/main.js"]

FROM server AS sandbox
COPY --from=sandbox-packages /app/node_modules node_modules

FROM server AS live
COPY --from=live-packages /app/node_modules node_modules
