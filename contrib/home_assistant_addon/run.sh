#!/usr/bin/with-contenv bashio
# Start the service and the studio with the options set in Home Assistant, and announce the service.
set -e

data=${TAPWORD_DATA:-/data}
share=${TAPWORD_SHARE:-/share/tapword}
# Home Assistant's ingress comes from this address, and its API is at the other.
supervisor=${TAPWORD_INGRESS:-172.30.32.2}
api=${TAPWORD_API:-http://supervisor/core/api}

# A model that was copied into the share stays there; otherwise it lies in the app's own folder.
folder=$data
if [ -e "$share/$(jq --raw-output .model "$data/options.json")" ]; then folder=$share; fi

mapfile -t arguments < <(
    jq --raw-output --arg folder "$folder" --arg api "$api" \
        --from-file "${TAPWORD_JQ:-/options.jq}" "$data/options.json"
)

(
    until (exec 3<> /dev/tcp/localhost/10400) 2> /dev/null; do sleep 1; done
    where=$(bashio::var.json uri "tcp://$(hostname):10400")
    if ! bashio::discovery wyoming "$where" > /dev/null; then
        bashio::log.error "Discovery failed. Add the Wyoming integration by hand."
    fi
) &

exec "${TAPWORD_COMMAND:-/opt/tapword/bin/tapword}" home "${arguments[@]}" \
    --host 0.0.0.0 --ingress "$supervisor" --commands
