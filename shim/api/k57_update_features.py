"""UpdateFeatures (key 57), versions 0-2.

Finalises levels of features: all or none. v0 upgrades only, v1 has the type of upgrade and `validate_only`. The v2
response has no results per feature. A level that cannot be set is INVALID_UPDATE_VERSION for the whole request.
kraft.version 1 makes the quorum of this node a dynamic one (KIP-853).
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata.elr import elr_safety_records
from kafka_shim.metadata.features import ELR_VERSION, KRAFT_VERSION, decide_update
from kafka_shim.protocol.messages.update_features_request import UpdateFeaturesRequest
from kafka_shim.protocol.messages.update_features_response import UpdatableFeatureResult, UpdateFeaturesResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

KEY, MIN, MAX = 57, 0, 2
REQUEST, RESPONSE = UpdateFeaturesRequest, UpdateFeaturesResponse


async def handle(context: Context, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    response = UpdateFeaturesResponse(error_message=None)
    metadata, by = context.broker.metadata, context.session
    updates = {}
    for update in request.feature_updates:
        # In v0 always that of an upgrade: as in Kafka's controller `allow_downgrade` does not count.
        updates[update.feature] = (update.max_version_level, update.upgrade_type)
    try:
        records = decide_update(
            metadata.image.features, updates, context.node_id, metadata.kraft_version, metadata.supported
        )
    except KafkaError as err:
        response.error_code = err.code
        response.error_message = (
            f"The update failed for all features since the following feature had an error: {err.message}"
        )
        return response
    if context.api_version <= 1:
        response.results = [
            UpdatableFeatureResult(feature=update.feature, error_message=ErrorCode.NONE.name)
            for update in request.feature_updates
        ]
    if request.validate_only:
        return response
    if updates.get(ELR_VERSION, (0, 0))[0] > 0:
        metadata.alter_configs([*elr_safety_records(metadata.image, metadata.config.min_insync_replicas), *records], by)
        records = []
    if updates.get(KRAFT_VERSION, (0, 0))[0] > metadata.kraft_version:
        metadata.upgrade_kraft_version(by)
    if records:
        metadata.commit(records, by=by)
    # The new metadata.version may know of them.
    metadata.assignments.record_cordoned()
    await metadata.flushed()
    return response
