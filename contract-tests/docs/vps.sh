#!/usr/bin/env bash
# Runs every block of docs/how-to/on-a-vps.md in one shell in a clean Debian (chroot), buys over TLS, and reads the ledger. The last line is
# `N passed, N failed`. Needs root, Debian's package debootstrap, and ports 80, 443 and 8402. DEBIAN=folder reuses a Debian that debootstrap
# created earlier.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
if [ "${VPS_INSIDE:-}" = '' ]; then
  VPS_INSIDE=1 exec unshare --mount --pid --fork --kill-child --mount-proc bash "$0"
fi
passed=0
work=$(mktemp -d)
machine="$work/machine"
trap 'status=$?; set +e; [ "$status" = 0 ] || tail -n 5 "$work/chain.log" "$machine"/var/log/started-* 2>/dev/null; umount -R -l "$machine/dev"; umount -l "$machine/proc"; rm -rf --one-file-system "$work"; echo "$passed passed, $((status != 0)) failed"; exit $status' EXIT
set -e
if [ "${DEBIAN:-}" ]; then cp -a "$DEBIAN" "$machine"; else debootstrap --variant=minbase bookworm "$machine" >/dev/null; fi
mount -t proc proc "$machine/proc" && mount --rbind /dev "$machine/dev" && mount --make-rslave "$machine/dev"
# Settings with which this machine reaches package registries.
cp /etc/ssl/certs/ca-certificates.crt "$machine/root/authorities.crt"
for file in etc/resolv.conf etc/hosts; do [ ! -e "/$file" ] || cp -L "/$file" "$machine/$file"; done
node "$root/dist/contract-tests/tools/package.js" "$machine/opt" >/dev/null
mkdir "$work/chain"
export SANDBOX_RPC_PORT=28899 SANDBOX_FACILITATOR_PORT=28403
STATE_DIR="$work/chain" node "$root/src/cli/coinslot.js" sandbox >"$work/chain.log" 2>&1 &
until grep -q '^pay to' "$work/chain.log"; do kill -0 $!; sleep 0.2; done
install -d -m 700 "$machine/etc/coinslot"
printf '%s\n' "SOLANA_RPC_URL=http://127.0.0.1:$SANDBOX_RPC_PORT" "FACILITATOR_URL=http://127.0.0.1:$SANDBOX_FACILITATOR_PORT" ADMIN_PORT=0 >"$machine/etc/coinslot/settings"
# Stands in for `systemctl enable --now` and `restart` of these two units.
cat >"$machine/usr/local/bin/systemctl" <<'END'
#!/bin/bash
set -e
name=${*: -1}
unit=$(ls /etc/systemd/system/"$name".service /lib/systemd/system/"$name".service 2>/dev/null | head -1)
of() { sed -n "s/^$1=//p" "$unit"; }
user=$(of User)
credentials=$(mktemp -d)
for each in $(of LoadCredential); do cp "${each#*:}" "$credentials/${each%%:*}"; done
chown -R "$user" "$credentials"
for each in $(of StateDirectory); do install -d -m 700 -o "$user" "/var/lib/$each"; done
settings=$(for each in $(of EnvironmentFile); do cat "$each"; done)
cd "$(of WorkingDirectory | grep . || echo /)"
env -i PATH="$PATH" HOME="$(getent passwd "$user" | cut -d: -f6)" CREDENTIALS_DIRECTORY="$credentials" $(of Environment) $settings \
  setpriv --reuid="$user" --regid="$user" --clear-groups --no-new-privs --inh-caps=+net_bind_service --ambient-caps=+net_bind_service $(of ExecStart) >"/var/log/started-$name" 2>&1 &
END
chmod 755 "$machine/usr/local/bin/systemctl"
{
  echo 'set -eo pipefail'
  awk '/^```bash$/ { inside = 1; print "echo line " NR " of the page, after $SECONDS s >&2"; next } /^```$/ { inside = 0 } inside' "$root/docs/how-to/on-a-vps.md"
} >"$machine/root/page.sh"
DOMAIN=localhost NETWORK=sandbox PAY_TO=$(awk '/^pay to/ { print $3 }' "$work/chain.log") DEBIAN_FRONTEND=noninteractive NODE_EXTRA_CA_CERTS=/root/authorities.crt npm_config_cafile=/root/authorities.crt \
  PATH=/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin chroot "$machine" bash /root/page.sh >"$work/page.log" 2>"$work/page.err" || { tail -n 20 "$work/page.log" "$work/page.err"; exit 1; }
grep '^line' "$work/page.err"
authority=$(find "$machine/var/lib/caddy" -name root.crt 2>/dev/null | head -1)
for _ in $(seq 300); do
  authority=$(find "$machine/var/lib/caddy" -name root.crt 2>/dev/null | head -1)
  [ "$authority" ] && curl -fs --cacert "$authority" https://localhost/health >/dev/null && break
  sleep 0.2
done
sold=$(SOLANA_RPC_URL="http://127.0.0.1:$SANDBOX_RPC_PORT" STATE_DIR="$work/chain" NODE_EXTRA_CA_CERTS="$authority" node "$root/src/cli/coinslot.js" buy textStats '{"text":"Two words."}' --url https://localhost --keypair "$work/chain/buyer.json")
echo "$sold" && grep -q '"words": *2' <<<"$sold"
passed=1
