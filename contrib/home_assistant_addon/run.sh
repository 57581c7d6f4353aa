#!/usr/bin/with-contenv bashio
# Start the service with the options set in Home Assistant, and announce its address.
set -e

mapfile -t arguments < <(jq --raw-output --from-file /options.jq /data/options.json)

(
    until (exec 3<> /dev/tcp/localhost/10400) 2> /dev/null; do sleep 1; done
    where=$(bashio::var.json uri "tcp://$(hostname):10400")
    if ! bashio::discovery wyoming "$where" > /dev/null; then
        bashio::log.error "Discovery failed. Add the Wyoming integration by hand."
    fi
) &

exec /opt/tapword/bin/tapword wyoming "${arguments[@]}"
