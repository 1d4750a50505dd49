import { type ComponentProps, lazy, Suspense } from "react";
import type Editor from "./editor";
import { Loading } from "./states";

const Loaded = lazy(() => import("./editor"));

export function LazyEditor(props: ComponentProps<typeof Editor>) {
  return (
    <Suspense fallback={<Loading />}>
      <Loaded {...props} />
    </Suspense>
  );
}
