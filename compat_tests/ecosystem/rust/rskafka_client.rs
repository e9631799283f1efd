// One application of rskafka: a controller client that makes a topic, and partition clients that write and read it.
use std::collections::BTreeMap;

use rskafka::chrono::{TimeZone, Utc};
use rskafka::client::partition::{Compression, OffsetAt, UnknownTopicHandling};
use rskafka::client::ClientBuilder;
use rskafka::record::Record;

const TOPIC: &str = "rskafka";
const COUNT: i64 = 300;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bootstrap = std::env::args().nth(1).expect("the address of a broker");
    let client = ClientBuilder::new(vec![bootstrap]).build().await?;
    let controller = client.controller_client()?;
    controller.create_topic(TOPIC, 2, 1, 5_000).await?;
    println!("again: {}", controller.create_topic(TOPIC, 2, 1, 5_000).await.is_err());
    let compressions = [
        Compression::NoCompression,
        Compression::Gzip,
        Compression::Lz4,
        Compression::Snappy,
        Compression::Zstd,
    ];
    for number in 0..2 {
        let partition = client.partition_client(TOPIC, number, UnknownTopicHandling::Retry).await?;
        let mut offsets = Vec::new();
        for compression in compressions {
            let records = (0..COUNT)
                .map(|each| Record {
                    key: Some(format!("k{each}").into_bytes()),
                    value: (each % 7 != 0).then(|| format!("v{each}").into_bytes()),
                    headers: BTreeMap::from([("kind".to_owned(), format!("{compression:?}").into_bytes())]),
                    timestamp: Utc.timestamp_millis_opt(1_700_000_000_000 + each).unwrap(),
                })
                .collect();
            let answer = partition.produce(records, compression).await?;
            let given = format!("{answer:?}");
            offsets.push(given.contains("offsets"));
        }
        let mut next = partition.get_offset(OffsetAt::Earliest).await?;
        let end = partition.get_offset(OffsetAt::Latest).await?;
        let (mut found, mut without, mut kinds) = (0, 0, BTreeMap::<String, i64>::new());
        while next < end {
            let (records, _) = partition.fetch_records(next, 1..1_000_000, 1_000).await?;
            for record in &records {
                found += 1;
                without += i64::from(record.record.value.is_none());
                let kind = String::from_utf8(record.record.headers["kind"].clone())?;
                *kinds.entry(kind).or_default() += 1;
            }
            next = records.last().map_or(next, |record| record.offset + 1);
        }
        println!("partition {number}: {end} at its end, {found} read, {without} without a value, {kinds:?}");
        partition.delete_records(10, 5_000).await?;
        println!("earliest after deletion: {}", partition.get_offset(OffsetAt::Earliest).await?);
    }
    let topics = client.list_topics().await?;
    println!("topics: {:?}", topics.iter().map(|topic| (&topic.name, topic.partitions.len())).collect::<Vec<_>>());
    println!("unknown topic: {}", client.partition_client("none", 0, UnknownTopicHandling::Error).await.is_err());
    controller.delete_topic(TOPIC, 5_000).await?;
    Ok(())
}
