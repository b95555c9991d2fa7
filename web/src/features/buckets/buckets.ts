import type { BucketPlace, BucketStep } from '../../base/wire';

export const PROVIDERS: [BucketPlace['provider'], string][] = [
  ['s3', 'S3, or a service like it'],
  ['gcs', 'Google Cloud Storage'],
  ['azure', 'Azure Blob Storage'],
  ['folder', 'A folder of the server'],
];

export const STEPS: Record<BucketStep['step'], string> = {
  open: 'Open',
  write: 'Write',
  list: 'List',
  read: 'Read',
  presign: 'Signed address',
  cors: 'CORS',
  delete: 'Delete',
};

const SCHEMES: Record<BucketPlace['provider'], string> = { s3: 's3://', gcs: 'gs://', azure: 'az://', folder: '' };

/** The address of a bucket, as its own tools write it: `s3://training/files/`. */
export const addressOf = (bucket: BucketPlace): string => `${SCHEMES[bucket.provider]}${bucket.bucket}/${bucket.prefix}`;

export type Condition = 'ok' | 'failed' | 'unknown';

/** Whether a bucket can be used, as far as its last check or anybody after it knows. */
export function conditionOf(bucket: BucketPlace): Condition {
  if (bucket.away_ms !== null || bucket.steps.some((step) => step.state === 'failed')) return 'failed';
  return bucket.checked_ms === null ? 'unknown' : 'ok';
}

/** Whether clients reach a bucket. */
export const DIRECT = {
  label: 'Clients read it directly',
  text: 'They get addresses in the bucket that are valid for five minutes. Off: they do not reach it, and files go through this server, as they do for the page.',
} as const;
