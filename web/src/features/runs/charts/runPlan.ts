// The plan of a run: its series by metric, as the API returns them, without their values.

import type { SeriesInfo } from '../../../base/api';
import type { RunPlan } from '../../../base/wire';

/** The series of a page, each with its definition. */
export function seriesOf({ places: devices, metrics }: Pick<RunPlan, 'places' | 'metrics'>): SeriesInfo[] {
  return metrics.flatMap(({ series, mlflow, ...definition }) =>
    series.flatMap(({ key, mlflow: name, places: has, zero }) =>
      has.map((device): SeriesInfo => {
        const named = name !== null && mlflow !== null ? { name, ...mlflow } : null;
        return { ...definition, ...devices[device]!, key, mlflow: named, zero: zero.includes(device) };
      }),
    ),
  );
}
