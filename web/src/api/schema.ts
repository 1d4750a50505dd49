// Generated from openapi.json by scripts/types.mjs.
export interface paths {
    "/api/v1/tasks/{task}/completed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** The attempt has ended. The same report again is acknowledged again; another one about the same attempt is refused. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description `taskId` of the envelope */
                    task: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["TaskCompleted"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TaskAcknowledged"];
                    };
                };
                /** @description It is stored, and reads do not show it yet */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TaskAcknowledged"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/tasks/{task}/heartbeat": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** The attempt is alive. The response says whether to go on, and has a token that is valid for longer. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description `taskId` of the envelope */
                    task: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["TaskHeartbeat"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TaskAlive"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/tasks/{task}/started": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** A worker has started the attempt. The same worker may report it again. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description `taskId` of the envelope */
                    task: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["TaskStarted"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TaskAcknowledged"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Whether the process is up. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Health"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the server has measured, in Prometheus' format. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/plain": string;
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Whether the server can work: it is not stopping, and its store answers. Warnings name what else fails: an archive that takes no
         *     writes; a ledger that cannot be read or written, or whose events are not folded.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Health"];
                    };
                };
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/actions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Actions, newest first, without the bodies of webhooks. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description Only in one of these states, repeated or with commas: `status=pending&status=running`. */
                    status?: ("pending" | "running" | "completed" | "failed")[];
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ActionList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        /** Makes an action. Once this has answered it is stored, and will be done. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateAction"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Action"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/actions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One action, from the archive if it is no longer in the store. What came in over HTTP is shown to callers that may change it. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the action */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Action"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        /** Deletes an action. What runs of it goes on. */
        delete: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the action */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is deleted */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        /** Changes an action. What is left out stays; `recurrence_secs: null` ends the recurrence. */
        patch: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the action */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["PatchAction"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Action"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        trace?: never;
    };
    "/v1/actions/{id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Cancels an action. One that waits has failed, "cancelled"; one that runs is told to stop. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the action */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Action"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/actions/{id}/run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Runs an action now. One that waits does so no more; one that runs already is shown as it is; one that has ended is done once
         *     more, as a new one.
         */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the action */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is due now, or has just become so */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Action"];
                    };
                };
                /** @description A new one is due now */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Action"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/archive": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the archive of the tenant has: files by kind. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ArchiveSummary"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        /**
         * Erases the archive of the tenant: all that has ended by now. Repeating it is safe. It needs an administrator's key. The audit
         *     log of the tenant stays, unless the key has a grant for every namespace and tenant, as reading it needs one, too.
         */
        delete: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Erased"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/archive/{of}/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Erases all archived rows of an id that have ended by now: of an instance its row and its events, of an action its row, of a
         *     recurring action its history, of a batch all its rows. What is still in the store stays there; delete it first, and erase it
         *     then. Repeating it is safe.
         */
        delete: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description What the id is the id of */
                    of: components["schemas"]["ArchivedGroup"];
                    /** @description The id */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Erased"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/assets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Assets of published DAGs, by key, with what was made last of each. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AssetList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/assets/{asset}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** An asset. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Key of the asset */
                    asset: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Asset"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/assets/{asset}/lineage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What an asset is made of, and what is made of it. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description Of this partition, with the runs that have made what it is made of; of the asset as a whole without it. */
                    partition?: string;
                    /** @description At most so many edges away. */
                    depth?: number;
                };
                header?: never;
                path: {
                    /** @description Key of the asset */
                    asset: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AssetLineage"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/assets/{asset}/partitions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Partitions of an asset that were made or attempted, by key. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description Key of the asset */
                    asset: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AssetPartitionList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Changes in a namespace and tenant, newest first. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description Only changes by this key, by its id. */
                    actor?: string;
                    /** @description Only these operations: a method (`DELETE`), a word of the route (`cancel`), or both as in the log. */
                    action?: string;
                    /** @description Only changes of this: a path (`/v1/instances/order-1`) with all below it, or an id or name in one. */
                    resource?: string;
                    /** @description Only at or after this time. */
                    since?: string;
                    /** @description Only before this time. */
                    until?: string;
                    /** @description At most this many. A page may have fewer although more follow: one request looks at 10,000 entries at most. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AuditList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/backfills": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Backfills, newest first. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BackfillList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        /** Creates a backfill: runs of a DAG for a range of partitions, chunk by chunk. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateBackfill"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["CreatedBackfill"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/backfills/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A backfill. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the backfill */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Backfill"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/backfills/{id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Cancels a backfill with its runs. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the backfill */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BackfillChanged"];
                    };
                };
                /** @description It is stored and will be applied */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BackfillChanged"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/backfills/{id}/chunks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Chunks of a backfill that were started, in order. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the backfill */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BackfillChunkList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/backfills/{id}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Pauses a backfill: no further chunks are started. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the backfill */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BackfillChanged"];
                    };
                };
                /** @description It is stored and will be applied */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BackfillChanged"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/backfills/{id}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Resumes a paused backfill. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the backfill */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BackfillChanged"];
                    };
                };
                /** @description It is stored and will be applied */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BackfillChanged"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/backfills/{id}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Runs the chunks of a backfill again that have failed, as a new backfill with the active version of the DAG. The backfill must
         *     have ended.
         */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the backfill */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["CreatedBackfill"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/batches": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Batches, newest first. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description Only batches of this runbook. */
                    runbook?: string;
                    /** @description Only batches in one of these states, repeated or with commas: `status=failed&status=cancelled`, `status=failed,cancelled`. */
                    status?: ("detected" | "init_dispatched" | "active" | "completed" | "failed" | "cancelled")[];
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BatchList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        /** Creates a batch. It begins once all its members are stored. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateBatch"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Batch"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/batches/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A batch with its phases and init steps, and why it waits. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the batch */
                    id: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BatchDetails"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        /**
         * Deletes a batch that has ended, with its members, steps and requests. It is unknown from then on; its rows are removed in the
         *     background.
         */
        delete: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the batch */
                    id: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is deleted */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/batches/{id}/explain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Why a row of a batch waits, what will wake it, and when. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description `phase-108`, `member-501`, `step-1042` or `init-7`; the batch itself by default. */
                    row?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the batch */
                    id: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Explanation"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/batches/{id}/members": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Members of a batch, in the order in which they were added. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description Only the member with this key; letter case does not matter. */
                    key?: string;
                    /** @description Only members in one of these states, repeated or with commas: `status=failed&status=cancelled`, `status=failed,cancelled`. */
                    status?: ("active" | "removed" | "failed" | "cancelled")[];
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the batch */
                    id: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["MemberList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        /**
         * Adds members to a batch, updates those that exist, and takes back those that had left. Late members catch up on phases that
         *     were due.
         */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the batch */
                    id: number;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["PutMembers"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BatchRequest"];
                    };
                };
                /** @description It is stored and will be applied */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BatchRequest"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/batches/{id}/members/remove": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Removes members from a batch: their open steps are cancelled, then the removal steps of the runbook run. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the batch */
                    id: number;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RemoveMembers"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BatchRequest"];
                    };
                };
                /** @description It is stored and will be applied */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BatchRequest"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/batches/{id}/members/{member}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A member with its steps in all phases. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the batch */
                    id: number;
                    /** @description Id of the member */
                    member: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["MemberDetails"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/batches/{id}/report": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Members and steps of a batch as CSV: one line for each member and step, with status, attempts,
         *     times and error. Cells that a spreadsheet would take for a formula begin with an apostrophe.
         *     What cannot be read has a line with the status `unreadable`, its id and the reason. The answer
         *     is sent while it is read; one that cannot be read to its end has a last line with the member
         *     status `incomplete` and the reason, and is broken off.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the batch */
                    id: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/csv": string;
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/batches/{id}/requests": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Requests something of a batch: advance, approve, pause, resume, cancel, retry, skip. The request is stored, and the answer
         *     waits up to 10 s for it to be applied.
         */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the batch */
                    id: number;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["BatchAction"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BatchRequest"];
                    };
                };
                /** @description It is stored and will be applied */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BatchRequest"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/batches/{id}/requests/{key}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A request about a batch, and what became of it. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the batch */
                    id: number;
                    /** @description Key of the request */
                    key: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BatchRequest"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/bus": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Subscriptions, by topic and name. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BusSubscriptionList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/bus/{topic}/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sends messages to a topic. Each goes to every subscription whose filter matches. Workers may send
         *     to `results`; other topics need an operator's key.
         */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description The topic */
                    topic: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SendMessages"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["MessagesSent"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/bus/{topic}/{subscription}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One subscription, and how long its oldest message waits. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description The topic */
                    topic: string;
                    /** @description The subscription */
                    subscription: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BusSubscription"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/bus/{topic}/{subscription}/dead-letters": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Dead letters of a subscription, oldest first. They are kept for 90 days. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description The topic */
                    topic: string;
                    /** @description The subscription */
                    subscription: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BusDeadLetterList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/bus/{topic}/{subscription}/dead-letters/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Deletes a dead letter. */
        delete: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description The topic */
                    topic: string;
                    /** @description The subscription */
                    subscription: string;
                    /** @description Id of the dead letter */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is deleted */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/bus/{topic}/{subscription}/dead-letters/{id}/resubmit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Sends a dead letter to its subscription again, as a new message, and removes the letter. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description The topic */
                    topic: string;
                    /** @description The subscription */
                    subscription: string;
                    /** @description Id of the dead letter */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is sent again */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/bus/{topic}/{subscription}/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Messages of a subscription that are neither completed nor dead, oldest first. Looking at them
         *     neither locks nor counts them.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description The topic */
                    topic: string;
                    /** @description The subscription */
                    subscription: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BusMessageList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/bus/{topic}/{subscription}/receive": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Locks messages of a subscription for a minute, oldest first, or waits for them. Workers may
         *     receive from `jobs`.
         */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description The topic */
                    topic: string;
                    /** @description The subscription */
                    subscription: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ReceiveMessages"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ReceivedMessages"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/bus/{topic}/{subscription}/renew": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Extends the lock of a message to a minute from now. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description The topic */
                    topic: string;
                    /** @description The subscription */
                    subscription: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RenewLock"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["LockRenewed"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/bus/{topic}/{subscription}/settle": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Ends a delivery: the message is completed, redelivered, or becomes a dead letter. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description The topic */
                    topic: string;
                    /** @description The subscription */
                    subscription: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SettleMessage"];
                };
            };
            responses: {
                /** @description It has ended */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/counts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * How many instances there are, by state, name or failure. The newest are looked at first, found by an index for `status`,
         *     `orchestration`, `function`, `label` and times of creation; `truncated` says when older ones were not looked at.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description By what; by state without it. */
                    by?: "status" | "orchestration" | "function" | "failure";
                    /** @description Only ids that start with this. */
                    prefix?: string;
                    /** @description Only in one of these states, repeated or with commas. */
                    status?: ("pending" | "running" | "paused" | "completed" | "failed" | "cancelled" | "continued_as_new")[];
                    /** @description Only of this orchestration. */
                    orchestration?: string;
                    /** @description Only calls of this function, whatever made them. */
                    function?: string;
                    /** @description Only with all of these labels, each `key=value`. */
                    label?: string[];
                    /** @description Only created at or after this time. */
                    created_from?: string;
                    /** @description Only created before this time. */
                    created_before?: string;
                    /** @description Only those that failed with this code, or with this category where there is no code. */
                    failure?: string;
                    /** @description Only those that ended at or after this time. */
                    ended_from?: string;
                    /** @description Only those that ended before this time. */
                    ended_before?: string;
                    /** @description Look at this many instances at most; 10,000 without it. */
                    limit?: number;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["InstanceCounts"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/dags": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** DAGs by name. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DagList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        /**
         * Publishes a DAG. The version is active from then on: new runs follow it. Publishing the active version again changes
         *     nothing.
         */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["PublishDag"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DagVersion"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/dags/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A DAG with the tasks of its active version. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Name of the DAG */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DagDetails"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        /** Deletes a DAG with all its versions. Its runs stay. */
        delete: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Name of the DAG */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is deleted */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/dags/{name}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Pauses a DAG: its schedule, sensors and backfills start no runs. Callers still may. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Name of the DAG */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Dag"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/dags/{name}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Resumes a paused DAG. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Name of the DAG */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Dag"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/dags/{name}/versions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Versions of a DAG, oldest first, without their documents. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description Name of the DAG */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DagVersionList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/dags/{name}/versions/{version}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A version of a DAG with its document. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Name of the DAG */
                    name: string;
                    /** @description The version */
                    version: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DagVersion"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/dead-letters": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Dead letters, newest first: messages that could not be taken, and turns and activities that were given up. They are kept
         *     for 30 days.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description Only of this instance. */
                    instance?: string;
                    /** @description Only of this sort. */
                    what?: "message" | "turn" | "activity";
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DeadLetterList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/dead-letters/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One dead letter, with what it carried. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the dead letter */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DeadLetter"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        /** Deletes a dead letter, with what it carried. */
        delete: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the dead letter */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is deleted */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/dead-letters/{id}/resubmit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Puts back what was given up, once, and removes the letter. A message is sent again; for a turn or an activity the next
         *     execution of its instance begins, as by a restart.
         */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the dead letter */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Resubmitted"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What happens to instances, batches of runbooks and runs of DAGs, as it happens: from now on, or from the event after `Last-Event-ID` if the server still has
         *     it.
         * @description The first event is `listening`: what is committed after it will be shown. The others are `change`, with a change as
         *     data, `batch`, with what one commit changed in a batch (`BatchChange`), and `run`, with what was published of a run
         *     (`RunChange`): up to 50 rows or tasks, the others as counts. After an event `lagged` some are missing; list the instances, or
         *     get the batch or the run, to see how they stand. Nodes keep the last
         *     10,000 changes, for a minute after the last listener has gone. Changes on other nodes of a cluster arrive within a second,
         *     those of the first two seconds of the first listener may be missing.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description Only of instances whose ids start with this. */
                    prefix?: string;
                    /** @description Only changes that led to one of these states, repeated or with commas: `status=failed&status=cancelled`, `status=failed,cancelled`. */
                    status?: ("pending" | "running" | "paused" | "completed" | "failed" | "cancelled" | "continued_as_new")[];
                    /** @description Only of this orchestration. */
                    orchestration?: string;
                    /** @description Only of calls of this function, whatever made them. */
                    function?: string;
                    /** @description Only of instances with all of these labels, each `key=value`. */
                    label?: string[];
                    /**
                     * @description Only changes of this batch of a runbook, and none of instances. Without it, changes of batches are shown unless a filter
                     *     of instances is given.
                     */
                    batch?: number;
                    /**
                     * @description Only changes of this run of a DAG, and none of instances or batches. Without it, changes of runs are shown unless a filter
                     *     of instances or `batch` is given.
                     */
                    run?: string;
                };
                header?: {
                    /** @description Id of the last event that was seen */
                    "last-event-id"?: string | null;
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/event-stream": components["schemas"]["FollowedChange"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/functions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Functions, by name. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["FunctionList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/functions/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One function. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Name of the function */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        /** @description The version; only of stored functions */
                        etag?: string;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Function"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        /**
         * Creates or replaces a function. `If-None-Match: *` creates it; `If-Match` with the `ETag` of a version replaces that one.
         *     Without either nothing is written, so that nobody overwrites what they have not seen.
         */
        put: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: {
                    /** @description `*`: there must be none yet */
                    "if-none-match"?: string | null;
                    /** @description The version that is replaced */
                    "if-match"?: string | null;
                };
                path: {
                    /** @description Name of the function */
                    name: string;
                };
                cookie?: never;
            };
            /** @description The declaration, as the guide's page "functions" describes it */
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Json"];
                };
            };
            responses: {
                /** @description It was replaced */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Function"];
                    };
                };
                /** @description It was created */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Function"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        post?: never;
        /** Removes a stored function. Calls that wait to be run will fail. */
        delete: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: {
                    /** @description Only this version */
                    "if-match"?: string | null;
                };
                path: {
                    /** @description Name of the function */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is removed */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/hooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Webhook routes, by name. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["HookList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/hooks/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What became of requests at all routes of a namespace and tenant, newest first. The last 500 or so are kept. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["HookEventList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/hooks/{namespace}/{route}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One webhook route. */
        get: {
            parameters: {
                query?: {
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Namespace of the route */
                    namespace: string;
                    /** @description Name of the route */
                    route: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        /** @description The version */
                        etag?: string;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Hook"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        /**
         * Creates or replaces a webhook route. `If-None-Match: *` creates it; `If-Match` with the `ETag` of a version replaces that
         *     one. Without either nothing is written, so that nobody overwrites what they have not seen.
         */
        put: {
            parameters: {
                query?: {
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: {
                    /** @description `*`: there must be none yet */
                    "if-none-match"?: string | null;
                    /** @description The version that is replaced */
                    "if-match"?: string | null;
                };
                path: {
                    /** @description Namespace of the route */
                    namespace: string;
                    /** @description Name of the route */
                    route: string;
                };
                cookie?: never;
            };
            /** @description The declaration, as the guide's page "webhooks" describes it */
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Json"];
                };
            };
            responses: {
                /** @description It was replaced */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Hook"];
                    };
                };
                /** @description It was created */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Hook"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        /**
         * Takes what a sender posts, whatever it is. Once this has answered, it is on the disk. Which tenant's route it is, the
         *     parameter `tenant` says; all other parameters are the route's to use.
         */
        post: {
            parameters: {
                query?: {
                    /** @description Tenant of the route; `default` without it */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Namespace of the route */
                    namespace: string;
                    /** @description Name of the route */
                    route: string;
                };
                cookie?: never;
            };
            /** @description Anything, up to the route's limit */
            requestBody: {
                content: {
                    "*/*": string;
                };
            };
            responses: {
                /** @description It is on the disk */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Received"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        /** Removes a webhook route. Its payloads stay until their time is over. */
        delete: {
            parameters: {
                query?: {
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: {
                    /** @description Only this version */
                    "if-match"?: string | null;
                };
                path: {
                    /** @description Namespace of the route */
                    namespace: string;
                    /** @description Name of the route */
                    route: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is removed */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        /** Changes settings of a webhook route: those that are named; `null` takes one back to its default. */
        patch: {
            parameters: {
                query?: {
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: {
                    /** @description Only this version */
                    "if-match"?: string | null;
                };
                path: {
                    /** @description Namespace of the route */
                    namespace: string;
                    /** @description Name of the route */
                    route: string;
                };
                cookie?: never;
            };
            /** @description An object with the settings to change */
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Json"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Hook"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        trace?: never;
    };
    "/v1/hooks/{namespace}/{route}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What became of requests at one route, newest first. */
        get: {
            parameters: {
                query?: {
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description Namespace of the route */
                    namespace: string;
                    /** @description Name of the route */
                    route: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["HookEventList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/hooks/{namespace}/{route}/payloads": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What came in at a route, newest first, without bodies. */
        get: {
            parameters: {
                query?: {
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description Not before this time. */
                    since?: string;
                    /** @description Not after this time. */
                    until?: string;
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description Namespace of the route */
                    namespace: string;
                    /** @description Name of the route */
                    route: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["HookPayloadList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/hooks/{namespace}/{route}/payloads/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** All of a payload: its body byte for byte, its headers, and what became of its actions. */
        get: {
            parameters: {
                query?: {
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Namespace of the route */
                    namespace: string;
                    /** @description Name of the route */
                    route: string;
                    /** @description Id of the payload */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["HookPayloadDetail"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        /** Deletes a payload. Actions that were made of it go on. */
        delete: {
            parameters: {
                query?: {
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Namespace of the route */
                    namespace: string;
                    /** @description Name of the route */
                    route: string;
                    /** @description Id of the payload */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is deleted */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/hooks/{namespace}/{route}/payloads/{id}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Calls the function of a payload again, as a new action, with the route as it is declared now. */
        post: {
            parameters: {
                query?: {
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Namespace of the route */
                    namespace: string;
                    /** @description Name of the route */
                    route: string;
                    /** @description Id of the payload */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Replayed"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/hooks/{namespace}/{route}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Says whether a route would take a request with these headers and this body now, and gives a command that sends the body with
         *     a signature. Nothing is received, and secrets stay where they are: the command takes the secret from the variable `SECRET`.
         */
        post: {
            parameters: {
                query?: {
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Namespace of the route */
                    namespace: string;
                    /** @description Name of the route */
                    route: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["TestHook"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["HookTested"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instances": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Instances, newest first. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description Only ids that start with this. */
                    prefix?: string;
                    /** @description Only in one of these states, repeated or with commas: `status=failed&status=cancelled`, `status=failed,cancelled`. */
                    status?: ("pending" | "running" | "paused" | "completed" | "failed" | "cancelled" | "continued_as_new")[];
                    /** @description Only of this orchestration. */
                    orchestration?: string;
                    /** @description Only calls of this function, whatever made them. */
                    function?: string;
                    /** @description Only with all of these labels, each `key=value`. */
                    label?: string[];
                    /** @description Only children of this instance. */
                    parent?: string;
                    /** @description Only created at or after this time. */
                    created_from?: string;
                    /** @description Only created before this time. */
                    created_before?: string;
                    /**
                     * @description Only those that failed with this code, or with this category where there is no code. For this and all that follow rows are
                     *     looked at, not found by an index: a page may have fewer than `limit` although more follow.
                     */
                    failure?: string;
                    /** @description Only those that ended at or after this time. */
                    ended_from?: string;
                    /** @description Only those that ended before this time. */
                    ended_before?: string;
                    /** @description Only those that took longer than this from their start to their end, or to now if they have not ended. */
                    longer_than_ms?: number;
                    /** @description Only those that took less than this. */
                    shorter_than_ms?: number;
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["InstanceList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        /** Starts an instance. Once this has answered, the start is stored and will happen. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /**
                     * @description Wait up to so many milliseconds for the instance to end, and show it if it did. If the key is revoked or expires meanwhile,
                     *     the answer is 401 and says that the instance was started.
                     */
                    wait_ms?: number;
                };
                header?: {
                    /** @description W3C trace context, handed on to the instance */
                    traceparent?: string | null;
                };
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["StartInstance"];
                };
            };
            responses: {
                /** @description It was there already (use_existing) */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Started"];
                    };
                };
                /** @description It was started */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Started"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instances/bulk": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancels, pauses, resumes, deletes, restarts or retries all instances that match or are named, or counts them (`dry_run`). What
         *     does not fit into the time of a request is left for the next one, which goes on at `next_cursor`. Repeated with the same
         *     `Idempotency-Key`, also after the server was killed, it has one effect.
         */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Bulk"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BulkResult"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instances/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * One instance; a call of a function with how far it is: its input, its failed attempts, the worker that has it, and what it
         *     waits for.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description Wait up to so many milliseconds for the instance to end; the answer shows its state then, ended or not. */
                    wait_ms?: number;
                };
                header?: never;
                path: {
                    /** @description Id of the instance; a slash in it is written %2F */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        /** @description The revision */
                        etag?: string;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Instance"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        /** Deletes an instance with its children, its history and all that is queued for it. */
        delete: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description Also when it has not ended. */
                    force?: boolean;
                };
                header?: never;
                path: {
                    /** @description Id of the instance */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Deleted"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instances/{id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Cancels an instance with its children. One that has ended stays as it is, and the answer is 409 `instance-ended`. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the instance */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Reason"];
                };
            };
            responses: {
                /** @description It is stored and will be done */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Accepted"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instances/{id}/enqueue": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Puts a message into a mailbox. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the instance */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Send"];
                };
            };
            responses: {
                /** @description It is stored and will be delivered */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Accepted"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instances/{id}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The events of an instance, from the first one or from the one after `Last-Event-ID`, until it has ended.
         * @description The id of an event is `<execution>-<event>`, its name the kind, its data a history event. When the instance has ended,
         *     an event `end` follows with the instance as data, and the stream is over.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: {
                    /** @description Id of the last event that was seen */
                    "last-event-id"?: string | null;
                };
                path: {
                    /** @description Id of the instance */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/event-stream": string;
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instances/{id}/executions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Executions of an instance, newest first. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the instance */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ExecutionList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instances/{id}/explain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What an instance waits for: timers, signals, activities with their workers, children; and when
         *     it wakes up by itself.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the instance; a slash in it is written %2F */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["InstanceExplanation"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instances/{id}/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Recorded events of one execution. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description Which execution; the current one without it. */
                    execution?: number;
                    /** @description Only events after this one. */
                    after?: number;
                    /** @description At most this many. */
                    limit?: number;
                };
                header?: never;
                path: {
                    /** @description Id of the instance */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["History"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instances/{id}/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the tools of an instance wrote to stderr, of every attempt. It is kept for seven days. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the instance */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["FunctionLogList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instances/{id}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Holds an instance. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the instance */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Reason"];
                };
            };
            responses: {
                /** @description It is stored and will be done */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Accepted"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instances/{id}/raise": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Raises a signal. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the instance */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Send"];
                };
            };
            responses: {
                /** @description It is stored and will be delivered */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Accepted"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instances/{id}/restart": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Starts an instance that has ended again, with the input of its last start or with `input`. Its next execution begins, and the earlier ones stay;
         *     with `new_id` a new instance is started instead. A call of a function is checked as a new one is, and made as the function is
         *     declared now.
         */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: {
                    /** @description W3C trace context, handed on to the instance */
                    traceparent?: string | null;
                };
                path: {
                    /** @description Id of the instance */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Restart"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Started"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instances/{id}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Lets a held instance go on. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the instance */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is stored and will be done */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Accepted"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instances/{id}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Lets the activities of an instance that wait for their next attempt run at once, and those that were given back for later.
         *     Their attempts count as before, and timers keep their time. When none is delayed, the answer is 409 `nothing-to-retry`.
         */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the instance */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Reason"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Retried"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instances/{id}/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The status that the code of an instance has set. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description Wait for a version above this one. */
                    after?: number;
                    /** @description Wait up to so many milliseconds for it; the answer shows what is there then. */
                    wait_ms?: number;
                };
                header?: never;
                path: {
                    /** @description Id of the instance */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["CustomStatus"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instances/{id}/tree": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** An instance and its descendants, depth first: each before its children, those newest first. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the instance */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Tree"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/invocations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Calls a function. Once this has answered, the call is stored and will happen. The same key is the same call; with another
         *     function or input it is refused.
         */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /**
                     * @description Wait up to so many milliseconds for the instance to end, and show it if it did. If the key is revoked or expires meanwhile,
                     *     the answer is 401 and says that the instance was started.
                     */
                    wait_ms?: number;
                };
                header?: {
                    /** @description W3C trace context, handed on to the worker */
                    traceparent?: string | null;
                };
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Invoke"];
                };
            };
            responses: {
                /** @description It had been made already */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Started"];
                    };
                };
                /** @description The call was made; the id is that of an instance */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Started"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** All keys, without their secrets. */
        get: {
            parameters: {
                query?: {
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["KeyList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        /**
         * Makes a key. Its secret is in this answer and nowhere else.
         * @description The same request sent again gets this answer without the secret. If the first one was cut off before its answer was kept, the key
         *     gets a new secret.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CreateKey"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["CreatedKey"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/keys/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Revokes a key. It ceases to work within a few seconds on every node. */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description Id of the key */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is revoked */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who the caller is, and what it may do. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Me"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/nodes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The nodes that were heard of in the last hour: those that work, those that have stopped, and those that are lost. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["NodeList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/orchestrations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Orchestrations that a node has, or had within the last day, by name. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["OrchestrationList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/orchestrations/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One orchestration with its schemas. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Name of the orchestration */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Orchestration"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/pools": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Pools, by name: those of the settings, and those that workers have announced. What other nodes know of workers may be
         *     10 seconds old.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PoolList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/pools/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One pool with a page of its workers, by name. What other nodes know of workers may be 10 seconds old. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description Name of the pool */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PoolDetails"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        /**
         * Forgets a pool that its workers have announced, with the functions that they announced. The next worker that fetches for it
         *     announces it anew. Calls that wait stay.
         */
        delete: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Name of the pool */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is forgotten */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/pools/{name}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Pauses a pool: its calls wait and are not handed out. Calls under way go on. Pausing again
         *     changes the reason.
         */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Name of the pool */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: {
                content: {
                    "application/json": components["schemas"]["PausePool"] | null;
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Pool"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/pools/{name}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Resumes a pool, also one that rests because its workers were throttled. Resuming again is fine. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Name of the pool */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Pool"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/problems": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What is wrong in the tenant now, each with a count, its oldest and where it is listed. Each
         *     check looks at a bounded number of rows; `unknown` has those that could not look at all. With a
         *     key for all tenants also the store, the clock and the nodes.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ProblemReport"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/queues": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lengths of the queues. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Queues"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/recurring": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Recurring actions, newest first. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description Only those that fire, or that do not. */
                    enabled?: boolean;
                    /** @description Show also what became of so many last occurrences of each. */
                    outcomes?: number;
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RecurringList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        /** Makes a recurring action. Once this has answered it is stored, and will fire. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RecurringFields"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RecurringCreated"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/recurring/preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * The next times of a schedule that is not stored. A field that a creation refuses is refused; what is called may be left
         *     out, and a schedule that is over or never comes has no times.
         */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description After this time; now without it. */
                    from?: string;
                    /** @description How many; 10 without it. */
                    count?: number;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RecurringFields"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RecurringPreview"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/recurring/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One recurring action. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id or name of the recurring action */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RecurringAction"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        /**
         * Changes a recurring action. What is left out stays; `null` clears a field. If the schedule changes, the next time is
         *     found again.
         */
        put: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id or name of the recurring action */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RecurringFields"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RecurringAction"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        post?: never;
        /** Deletes a recurring action. What runs of it goes on. */
        delete: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id or name of the recurring action */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is deleted */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/recurring/{id}/backfill": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Runs what lies in the past and was not run. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id or name of the recurring action */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["BackfillRecurring"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Backfilled"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/recurring/{id}/explain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Why it did or did not run at a time. */
        get: {
            parameters: {
                query: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description The scheduled time in question. */
                    time: string;
                };
                header?: never;
                path: {
                    /** @description Id or name of the recurring action */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RecurringExplanation"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/recurring/{id}/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What became of its occurrences and why, newest first. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description Id or name of the recurring action */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RecurringHistory"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/recurring/{id}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Pauses a recurring action. What runs goes on. Pausing again is fine. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id or name of the recurring action */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: {
                content: {
                    "application/json": components["schemas"]["PauseRecurring"] | null;
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RecurringState"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/recurring/{id}/preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Its next times, with what daylight saving does to them. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description After this time; now without it. */
                    from?: string;
                    /** @description How many; 10 without it. */
                    count?: number;
                };
                header?: never;
                path: {
                    /** @description Id or name of the recurring action */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RecurringPreview"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/recurring/{id}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Lets a paused recurring action go on, from the next occurrence after now. Resuming again is fine. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id or name of the recurring action */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RecurringState"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/recurring/{id}/run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Runs a recurring action now, out of schedule and whether or not it is paused. The same key is the same run; without one the
         *     `Idempotency-Key` of the request is taken for it.
         */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id or name of the recurring action */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: {
                content: {
                    "application/json": components["schemas"]["RunRecurring"] | null;
                };
            };
            responses: {
                /** @description It had been run under this key */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RecurringRun"];
                    };
                };
                /** @description It was run */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RecurringRun"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runbooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Runbooks by name. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunbookList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        /**
         * Publishes a runbook. The version is active from then on: new batches follow it, and running batches with a start time
         *     move to it: `moves` tells how many, and which phases run again in them. Publishing the active version again changes
         *     nothing.
         */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["PublishRunbook"];
                };
            };
            responses: {
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunbookVersion"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runbooks/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A runbook. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Name of the runbook */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Runbook"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        /**
         * Deletes a runbook with all its versions. Refused while it has batches, ended ones included, or while its automation is
         *     enabled. A runbook that is published under the name later goes on counting its versions.
         */
        delete: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Name of the runbook */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is deleted */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runbooks/{name}/automation": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The query of a runbook's data source: when it runs, and what came of it. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Name of the runbook */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Automation"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        /**
         * Switches the query of a runbook on or off; it is off at first. Switched on, it runs at once and then every `interval`.
         *     Switched off, a run that reads its rows is cancelled and changes nothing; one that has begun to send them to batches
         *     completes. Batches go on.
         */
        put: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Name of the runbook */
                    name: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SetAutomation"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Automation"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runbooks/{name}/plan": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** What publishing a runbook would do: its version, and what it does to open batches. Nothing is changed. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Name of the runbook, as in the document */
                    name: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["PublishRunbook"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PublishPlan"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runbooks/{name}/preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Runs the query of a runbook and shows its rows, their batches, and what a run would change. Batches are not changed; a
         *     function that is the data source is called.
         */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Name of the runbook */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: {
                content: {
                    "application/json": components["schemas"]["PreviewRunbook"] | null;
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunbookPreview"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runbooks/{name}/removal/approve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Approves the removal of members that the query no longer has: those of the set that was shown, and no others. The next run,
         *     which is made at once, removes them unless the query has them again.
         */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Name of the runbook */
                    name: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["DecideRemoval"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Automation"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runbooks/{name}/removal/reject": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Keeps members that the query no longer has: those of the set that was shown. They stay until the query has had them again. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Name of the runbook */
                    name: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["DecideRemoval"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Automation"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runbooks/{name}/versions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Versions of a runbook, oldest first, without their texts. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description Name of the runbook */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunbookVersionList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runbooks/{name}/versions/{version}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A version of a runbook with its text. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Name of the runbook */
                    name: string;
                    /** @description The version */
                    version: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunbookVersion"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        /** Deletes a version of a runbook. Refused for the active version, and while batches use it. */
        delete: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Name of the runbook */
                    name: string;
                    /** @description The version */
                    version: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is deleted */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Runs, newest first. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description Only runs of this DAG. */
                    dag?: string;
                    /** @description Only runs in one of these states, repeated or with commas: `status=failed&status=cancelled`, `status=failed,cancelled`. */
                    status?: ("triggered" | "running" | "succeeded" | "failed" | "cancelled")[];
                    /** @description Only runs with this label, `key=value`. */
                    label?: string;
                    /** @description Only runs that were triggered at this time or later. */
                    triggered_from?: string;
                    /** @description Only runs that were triggered before this time. */
                    triggered_before?: string;
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        /**
         * Starts a run of a DAG. Once this has answered, the run is stored. A run key makes one run of many requests: a later request
         *     with the same key and payload answers with the same run and `created: false`, one with another payload is refused with 409.
         */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["StartRun"];
                };
            };
            responses: {
                /** @description The run key has this run already */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["StartedRun"];
                    };
                };
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["StartedRun"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A run with its first tasks, and why it waits. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the run */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunDetails"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Cancels a run: tasks that have not started end at once, running ones are cancelled. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the run */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CancelRun"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunChanged"];
                    };
                };
                /** @description It is stored and will be applied */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunChanged"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{id}/clear": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Clears tasks that have ended, so that they run again in the same run. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the run */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ClearTasks"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunChanged"];
                    };
                };
                /** @description It is stored and will be applied */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunChanged"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{id}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Pauses a run: no further attempts are dispatched; running ones go on. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the run */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunChanged"];
                    };
                };
                /** @description It is stored and will be applied */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunChanged"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{id}/rerun": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Repeats a run that has ended, as a new run with its parameters: what did not succeed, or the tasks that are named. Outputs of
         *     the other tasks are those of the earlier run.
         */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the run */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RerunRun"];
                };
            };
            responses: {
                /** @description The same request has started this run already */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["StartedRun"];
                    };
                };
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["StartedRun"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{id}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Resumes a paused run. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the run */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunChanged"];
                    };
                };
                /** @description It is stored and will be applied */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunChanged"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{id}/tasks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Tasks of a run, by key. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description Only tasks in one of these states, repeated or with commas. */
                    status?: ("planned" | "blocked" | "ready" | "dispatched" | "running" | "retry_wait" | "skipped" | "cancelled" | "failed" | "succeeded")[];
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the run */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunTaskList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{id}/tasks/{task}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A task of a run with its input and output. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the run */
                    id: string;
                    /** @description Key of the task */
                    task: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunTaskDetails"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{id}/tasks/{task}/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the tools of the last attempt of a task wrote to stderr. It is kept for seven days. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the run */
                    id: string;
                    /** @description Key of the task */
                    task: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["FunctionLogList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{id}/tasks/{task}/mark": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Sets the state of a task by hand. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the run */
                    id: string;
                    /** @description Key of the task */
                    task: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["MarkTask"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunChanged"];
                    };
                };
                /** @description It is stored and will be applied */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunChanged"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{id}/tasks/{task}/output": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What a task returned, whatever its size. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Id of the run */
                    id: string;
                    /** @description Key of the task */
                    task: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Json"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/saved": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Saved views and queries of the tenant, by name. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SavedList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/saved/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One saved view or query. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path: {
                    /** @description Its name */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        /** @description The version */
                        etag?: string;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Saved"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        /**
         * Saves a view or query under a name, and replaces what is there. With `If-None-Match: *` it
         *     replaces nothing; with `If-Match` it replaces that version only. A tenant has at most 200.
         */
        put: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: {
                    /** @description `*`: nothing is saved under this name yet */
                    "if-none-match"?: string | null;
                    /** @description The version that is replaced */
                    "if-match"?: string | null;
                };
                path: {
                    /** @description Its name: one line of at most 128 bytes */
                    name: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Save"];
                };
            };
            responses: {
                /** @description It was replaced */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Saved"];
                    };
                };
                /** @description It is new */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Saved"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        post?: never;
        /** Deletes a saved view or query. */
        delete: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: {
                    /** @description Only this version */
                    "if-match"?: string | null;
                };
                path: {
                    /** @description Its name */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is deleted */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Instances, functions, schedules, actions, runbooks, batches, DAGs and webhooks of the tenant whose ids or names begin with a
         *     text. A bounded number of rows is looked at; `truncated` has the kinds of which there may be more.
         */
        get: {
            parameters: {
                query: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description How an id or name begins; 1 to 200 bytes. Names of schedules are compared without letter case. */
                    q: string;
                    /** @description At most this many of each kind; 5 without it. */
                    limit?: number;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SearchResult"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Sessions: those of the caller's key, or all for an administrator of every tenant. */
        get: {
            parameters: {
                query?: {
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SessionList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        /**
         * Signs a browser in: a key becomes a session, whose cookie is in this answer and nowhere else.
         * @description The session may do what the key may, as long as the key works. It ends after `auth.session_minutes` without a request, after a
         *     day, or when it is ended. Only pages of this server may call this, by `Sec-Fetch-Site` or `Origin`; other programs send the
         *     key itself with each request.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SignIn"];
                };
            };
            responses: {
                201: {
                    headers: {
                        /** @description The cookie of the session */
                        "set-cookie"?: string;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Session"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Ends a session: signs its browser out. It ceases to work within a few seconds on every node. */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description Id of the session; `current` for that of the request */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It has ended */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/settings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The settings of the node that answers, each with where it comes from. Secrets are left out. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SettingList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sql": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The tables with their columns, the functions that queries may call, and the shipped queries. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SqlCatalogue"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        /**
         * Runs one SELECT in SQLite's dialect over the tables that `GET /v1/sql` lists. Nothing is written. It ends when its
         *     caller hangs up. The form of the answer is that of the request's `format`, or else of the header `Accept`.
         */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SqlQuery"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SqlAnswer"];
                        "text/csv": string;
                        "application/vnd.apache.parquet": number[];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/stats": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What was started in the tenant and how it ended, by the minute, with rates and run times by
         *     function and orchestration. The numbers are counts that nodes keep: what a node has counted in
         *     the 5 seconds before it was killed is missing.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description Seconds of a point: a multiple of 60, 60 unless given. */
                    step?: number;
                    /** @description Minutes before now: 60 unless given, at most a day. */
                    minutes?: number;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Stats"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/store": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the store takes on its disk, and what is left there. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["StoreFigures"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/system": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The node that answers, and counts over the whole store. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["System"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/timers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What wakes up by itself in the tenant, soonest first: timers, next attempts of activities, delayed starts. The newest 300
         *     instances that run or wait for their start are looked at; `truncated` says when there may be more.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TimerList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/work/complete": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Answers a call with its result. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CompleteWork"];
                };
            };
            responses: {
                /** @description The result is stored */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/work/exchange": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Answers any number of calls and leases the next ones. With answers it returns once their
         *     outcomes are durable, with the calls that are available; without answers it waits for calls. A
         *     repeat, with the number of the first request, gets the same answer.
         */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ExchangeWork"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ExchangedWork"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/work/fail": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Answers a call with a failure. The retry policy of the call decides what follows. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["FailWork"];
                };
            };
            responses: {
                /** @description The failure is stored */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/work/fetch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Leases calls of functions, oldest first, or waits for them. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["FetchWork"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["FetchedWork"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/work/heartbeat": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Shows that a call is being worked on, extends its lease, and says whether to go on. Show the new lease from then on. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Heartbeat"];
                };
            };
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["HeartbeatAnswer"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/work/release": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Gives a call back, to be handed out again. It counts neither as an attempt nor as a delivery. */
        post: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ReleaseWork"];
                };
            };
            responses: {
                /** @description It is back in the queue */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Workers that were heard of in the last two minutes, by name. What other nodes know may be 10 seconds old. */
        get: {
            parameters: {
                query?: {
                    /** @description Namespace; `default` without it. */
                    namespace?: string;
                    /** @description Tenant; `default` without it. */
                    tenant?: string;
                    /** @description At most this many. */
                    limit?: number;
                    /** @description `next_cursor` of the page before. */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["WorkerList"];
                    };
                };
                /** @description What is wrong, and what to do */
                "4XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
                /** @description What is wrong, and what to do */
                "5XX": {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/problem+json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description Answer to something that was accepted and will be done. */
        Accepted: {
            /** @description Id of the instance. */
            id: string;
        };
        /** @description An action. */
        Action: {
            /** @description Whether it is in the archive: its time in the store is over. */
            archived?: boolean;
            /**
             * Format: date-time
             * @description When it was made.
             */
            created_at: string;
            /** @description Its id. */
            id: string;
            /** @description The instance that runs it, or ran it. */
            instance?: string | null;
            /** @description What people call it. */
            label: string;
            /** @description What is left out here and why: a result that does not fit into the record of an action. */
            note?: string | null;
            /** @description What becomes of it when it is running and its process goes down. */
            on_restart: components["schemas"]["OnRestart"];
            /** @description The orchestration that it starts; `tool_name` is empty then. */
            orchestration?: string | null;
            /**
             * Format: int64
             * @description Whether it is done again, this many seconds after the time that it was due.
             */
            recurrence?: number | null;
            /** @description How far it is. */
            status: components["schemas"]["ActionStatus"];
            /** @description Input of the function. */
            tool_input: components["schemas"]["Json"];
            /** @description The function. */
            tool_name: string;
            /** @description What makes it due. */
            trigger: components["schemas"]["ActionTrigger"];
            /**
             * Format: date-time
             * @description When it was last changed.
             */
            updated_at: string;
        };
        /** @description A page of actions. */
        ActionList: {
            /** @description The actions, newest first. */
            actions: components["schemas"]["Action"][];
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
            /** @description Rows of this page that cannot be read; absent when there are none. */
            unreadable?: components["schemas"]["Unreadable"][];
        };
        /** @description How far an action is. */
        ActionStatus: {
            /** @enum {string} */
            type: "pending";
        } | {
            /** @enum {string} */
            type: "running";
        } | {
            /** @description What the function returned. */
            result: components["schemas"]["Json"];
            /** @enum {string} */
            type: "completed";
        } | {
            /** @description Why. */
            reason: string;
            /** @enum {string} */
            type: "failed";
        };
        /** @description What makes an action due. */
        ActionTrigger: {
            /**
             * Format: date-time
             * @description When it is due.
             */
            next_tick_at: string;
            /** @enum {string} */
            type: "scheduled";
        } | {
            /**
             * @description The body as it came, in base64. It may have secrets of the sender in it: only one action that is asked for by its
             *     id has it, and only for callers that may change it.
             */
            raw_payload?: string | null;
            /**
             * Format: date-time
             * @description When it came.
             */
            received_at: string;
            /** @enum {string} */
            type: "webhook";
        };
        /** @description What became of an answer. */
        AnswerOutcome: {
            /** @description With `continue`: the extended lease. */
            lease?: string | null;
            /**
             * Format: date-time
             * @description With `continue`: when it ends.
             */
            lease_expires_at?: string | null;
            problem?: components["schemas"]["Problem"] | null;
            /** @description With `cancel`: `cancelled` or `timed-out`. */
            reason?: string | null;
            /** @description What it is. */
            status: components["schemas"]["OutcomeStatus"];
        };
        /** @description What the archive of a tenant has. */
        ArchiveSummary: {
            /** @description Whether this server has an archive (`archive.enabled`). */
            enabled: boolean;
            /** @description Kinds of rows, by name. */
            kinds: components["schemas"]["ArchivedKind"][];
        };
        /**
         * @description What ids in the archive are ids of.
         * @enum {string}
         */
        ArchivedGroup: "instances" | "actions" | "recurring" | "audit" | "batches";
        /** @description The files of one kind. */
        ArchivedKind: {
            /**
             * Format: int64
             * @description Their size in bytes.
             */
            bytes: number;
            /**
             * Format: int64
             * @description How many files it has.
             */
            files: number;
            /**
             * @description Its name, as in paths.
             * @example instances
             */
            kind: string;
            /** @description The last one. */
            newest_day?: string | null;
            /** @description The first day (UTC) on which something ended that is archived. */
            oldest_day?: string | null;
        };
        /** @description An asset. */
        Asset: {
            /** @description Its key. */
            asset: string;
            /** @description Tasks that read it: those that make an asset downstream, and those that depend on a task that makes it. */
            consumers?: components["schemas"]["AssetTask"][];
            /** @description What it is. */
            description?: string | null;
            /** @description Assets that are made of it. */
            downstream?: string[];
            /** @description How old it may be before it is stale. */
            freshness?: string | null;
            last_materialization?: components["schemas"]["AssetPartition"] | null;
            /** @description Name of its partition definition; absent for an asset that is made as a whole. */
            partitioned_by?: string | null;
            /**
             * Format: int64
             * @description Those whose last attempt has failed.
             */
            partitions_failed: number;
            /**
             * Format: int64
             * @description Partitions that were made or attempted; 1 or 0 for an asset without partitions.
             */
            partitions_known: number;
            /**
             * Format: int64
             * @description Those that were made.
             */
            partitions_materialized: number;
            /** @description Tasks that make it. */
            producers?: components["schemas"]["AssetTask"][];
            /** @description Assets that it is made of. */
            upstream?: string[];
        };
        /** @description Lineage of an asset, or of one of its partitions. */
        AssetLineage: {
            /** @description Key of the asset. */
            asset: string;
            /** @description What is made of it, the nearest first. */
            downstream: components["schemas"]["LineageAsset"][];
            /** @description Whether nothing was left out: at most 500 assets in each direction are listed, and 100 partitions of each. */
            is_complete: boolean;
            partition?: components["schemas"]["LineagePartition"] | null;
            /** @description What it is made of, the nearest first. */
            upstream: components["schemas"]["LineageAsset"][];
        };
        /** @description Assets, by key. */
        AssetList: {
            /** @description The assets. */
            assets: components["schemas"]["Asset"][];
            /** @description Whether the assets of all DAGs were looked at; a tenant with more than 5,000 DAGs has further ones. */
            is_complete: boolean;
            /** @description Cursor of the next page; absent on the last. */
            next_cursor?: string | null;
            /** @description Stored ones that cannot be read. */
            unreadable?: components["schemas"]["Unreadable"][];
        };
        /** @description A partition of an asset. */
        AssetPartition: {
            /** @description Key of the asset. */
            asset: string;
            /**
             * Format: date-time
             * @description When that was.
             */
            last_attempt_at?: string | null;
            /** @description `succeeded`, `failed`, `skipped` or `cancelled`. */
            last_attempt_outcome?: string | null;
            /** @description Run that last attempted to make it. */
            last_attempt_run?: string | null;
            /**
             * Format: date-time
             * @description When that was.
             */
            last_materialization_at?: string | null;
            /** @description Run that made it last. */
            last_materialization_run?: string | null;
            /** @description Key of the partition; empty for an asset without partitions. */
            partition: string;
            /** @description Why it is stale, such as `upstream_newer`; absent while it is fresh, and in lists of assets. */
            stale_reason?: string | null;
            /**
             * Format: date-time
             * @description Since when it is stale, where a time is known: when what it is made of was made, or when it became too old.
             */
            stale_since?: string | null;
        };
        /** @description Partitions of an asset, by key. */
        AssetPartitionList: {
            /** @description Cursor of the next page; absent on the last. */
            next_cursor?: string | null;
            /** @description The partitions. */
            partitions: components["schemas"]["AssetPartition"][];
            /** @description Stored ones that cannot be read. */
            unreadable?: components["schemas"]["Unreadable"][];
        };
        /** @description A task of a DAG. */
        AssetTask: {
            /** @description Name of the DAG. */
            dag: string;
            /** @description Key of the task. */
            task: string;
        };
        /** @description One change that somebody asked for. */
        AuditEntry: {
            /**
             * Format: date-time
             * @description When.
             */
            at: string;
            /** @description Ids ascend with time. */
            id: string;
            /** @description Id of the key; absent on a server without authentication. */
            key?: string | null;
            /** @description Namespace of the request. */
            namespace: string;
            /** @description Method and route, as in `POST /v1/instances/{id}/cancel`. */
            operation: string;
            /** @description The path that was asked for. */
            path: string;
            /** @description Why, if the caller said so: in the body, or in the header `Segno-Reason`, percent-encoded. */
            reason?: string | null;
            /** @description Id of the request. */
            request_id: string;
            /**
             * Format: int32
             * @description HTTP status of the answer.
             */
            status: number;
            /** @description Tenant of the request. */
            tenant: string;
        };
        /** @description A page of the audit log, newest first. */
        AuditList: {
            /** @description The entries. */
            entries: components["schemas"]["AuditEntry"][];
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
            /** @description Rows of this page that cannot be read; absent when there are none. */
            unreadable?: components["schemas"]["Unreadable"][];
        };
        /**
         * @description How callers of a server show who they are.
         * @enum {string}
         */
        Authentication: "keys" | "none";
        /** @description The query of a runbook's data source: when it runs, and what came of it. */
        Automation: {
            /** @description Whether the data source is queried every interval. */
            enabled: boolean;
            last_decision?: components["schemas"]["RemovalDecided"] | null;
            last_error?: components["schemas"]["QueryError"] | null;
            last_result?: components["schemas"]["QueryResult"] | null;
            /**
             * Format: date-time
             * @description When the last run began.
             */
            last_run_at?: string | null;
            /**
             * Format: date-time
             * @description When the query is due next, or was due that runs now.
             */
            next_run_at?: string | null;
            pending_removal?: components["schemas"]["PendingRemoval"] | null;
            /** @description Whether a node runs the query now. */
            running: boolean;
            /** @description Why all but `enabled` is not known; absent when it is. */
            unreadable?: string | null;
        };
        /** @description A backfill. */
        Backfill: {
            /**
             * Format: int32
             * @description Partitions of one run.
             */
            chunk_size: number;
            /**
             * Format: int32
             * @description Chunks that have succeeded.
             */
            completed_chunks: number;
            /**
             * Format: date-time
             * @description When it was created.
             */
            created_at: string;
            /** @description Name of the DAG. */
            dag: string;
            /**
             * Format: int32
             * @description Chunks that have failed or were cancelled.
             */
            failed_chunks: number;
            /** @description Key of the first partition. */
            first_partition?: string | null;
            /** @description Id of the backfill. */
            id: string;
            /** @description Key of the last partition. */
            last_partition?: string | null;
            /**
             * Format: int32
             * @description Runs at a time.
             */
            max_concurrent_runs: number;
            /** @description The backfill whose failed chunks it repeats. */
            parent_backfill?: string | null;
            /**
             * Format: int32
             * @description Chunks that were started.
             */
            planned_chunks: number;
            /** @description State of the backfill. */
            status: components["schemas"]["BackfillStatus"];
            /**
             * Format: int32
             * @description Number of its partitions.
             */
            total_partitions: number;
        };
        /** @description A change of a backfill that is stored. */
        BackfillChanged: {
            /** @description Id of the backfill. */
            id: string;
            /** @description Whether reads show the change already. It is applied in any case. */
            is_visible: boolean;
        };
        /** @description A chunk of a backfill. */
        BackfillChunk: {
            /**
             * Format: int32
             * @description Its place, from 0.
             */
            index: number;
            /** @description Its partitions. */
            partitions: string[];
            /** @description Its run, once it exists. */
            run?: string | null;
            /** @description State of the chunk. */
            status: components["schemas"]["ChunkStatus"];
        };
        /** @description Chunks of a backfill, in order. */
        BackfillChunkList: {
            /** @description The chunks. */
            chunks: components["schemas"]["BackfillChunk"][];
            /** @description Cursor of the next page; absent on the last. */
            next_cursor?: string | null;
            /** @description Stored ones that cannot be read. */
            unreadable?: components["schemas"]["Unreadable"][];
        };
        /** @description Backfills, newest first. */
        BackfillList: {
            /** @description The backfills. */
            backfills: components["schemas"]["Backfill"][];
            /** @description Cursor of the next page; absent on the last. */
            next_cursor?: string | null;
            /** @description Stored ones that cannot be read. */
            unreadable?: components["schemas"]["Unreadable"][];
        };
        /** @description A range of the past to be run. */
        BackfillRecurring: {
            /** @description Only say what would be run. */
            dry_run?: boolean;
            /**
             * Format: date-time
             * @description Up to and including this time.
             */
            end: string;
            /** @description At most so many; 100 without it. */
            limit?: number | null;
            /** @description Namespace, if it is not in the query. */
            namespace?: string | null;
            /**
             * Format: date-time
             * @description From this time on.
             */
            start: string;
            /** @description Tenant, if it is not in the query. */
            tenant?: string | null;
        };
        /** @description What became of one occurrence of a backfill. */
        BackfillResult: {
            /** @description Why its call could not be made. */
            error?: string | null;
            /** @description What it is excluded by. */
            excluded_by?: string | null;
            /** @description The instance of its call. */
            instance?: string | null;
            /**
             * Format: date-time
             * @description The scheduled time.
             */
            occurrence: string;
            /**
             * @description `started`, `would_start`, `already_run`, `excluded` (the calendar leaves it out, and all up to the next), `deduplicated`
             *     or `refused`.
             */
            outcome: string;
        };
        /**
         * @description State of a backfill.
         * @enum {string}
         */
        BackfillStatus: "pending" | "running" | "paused" | "succeeded" | "failed" | "cancelled";
        /** @description What became of a backfill. */
        Backfilled: {
            /** @description How many of them were started. */
            dispatched: number;
            /** @description The recurring action. */
            id: string;
            /** @description Occurrences in the range. */
            occurrences: number;
            /** @description One by one. */
            results: components["schemas"]["BackfillResult"][];
        };
        /** @description A batch. */
        Batch: {
            /** @description Whether it is in the archive: its time in the store is over. */
            archived?: boolean;
            /**
             * Format: date-time
             * @description Reference time of the phases; absent in a batch that is advanced by hand.
             */
            batch_start_time?: string | null;
            /**
             * Format: date-time
             * @description When it ended.
             */
            completed_at?: string | null;
            /**
             * Format: date-time
             * @description When it was created.
             */
            detected_at: string;
            ending?: components["schemas"]["BatchStatus"] | null;
            /** @description Why it failed or was cancelled. */
            error_message?: string | null;
            /**
             * Format: int64
             * @description Id of the batch.
             */
            id: number;
            /**
             * Format: date-time
             * @description When its init steps began.
             */
            init_dispatched_at?: string | null;
            /** @description Whether all its first members are stored; nothing begins before. */
            is_sealed: boolean;
            /** @description Members by state. */
            member_counts: components["schemas"]["MemberCounts"];
            /** @description Why it is paused. */
            pause_reason?: string | null;
            /**
             * Format: date-time
             * @description Since when it is paused.
             */
            paused_at?: string | null;
            /** @description Name of its runbook. */
            runbook_name: string;
            /**
             * Format: int32
             * @description Version that it follows.
             */
            runbook_version: number;
            /** @description State of the batch. */
            status: components["schemas"]["BatchStatus"];
        };
        /** @description What is requested of a batch. */
        BatchAction: {
            /** @enum {string} */
            action: "advance";
        } | {
            /** @enum {string} */
            action: "pause_batch";
            /** @description Why. */
            reason?: string | null;
        } | {
            /** @enum {string} */
            action: "resume_batch";
        } | {
            /** @enum {string} */
            action: "cancel_batch";
            /** @description Why. */
            reason?: string | null;
        } | {
            /** @enum {string} */
            action: "reschedule";
            /**
             * Format: date-time
             * @description The new reference time.
             */
            batch_start_time: string;
        } | {
            /** @enum {string} */
            action: "retry_members";
            /** @description Ids of members. */
            batch_member_ids?: number[] | null;
            /** @description From where. */
            from?: components["schemas"]["RetryFrom"];
        } | {
            /** @enum {string} */
            action: "retry_init";
        } | {
            /** @enum {string} */
            action: "approve_phase";
            /**
             * Format: int64
             * @description The phase.
             */
            phase_execution_id: number;
        } | {
            /** @enum {string} */
            action: "reject_phase";
            /**
             * Format: int64
             * @description The phase.
             */
            phase_execution_id: number;
        } | {
            /** @enum {string} */
            action: "resume_phase";
            /**
             * Format: int64
             * @description The phase.
             */
            phase_execution_id: number;
        } | {
            /** @enum {string} */
            action: "skip_phase";
            /**
             * Format: int64
             * @description The phase.
             */
            phase_execution_id: number;
        } | {
            /** @enum {string} */
            action: "cancel_phase";
            /**
             * Format: int64
             * @description The phase.
             */
            phase_execution_id: number;
        } | {
            /** @enum {string} */
            action: "cancel_member";
            /**
             * Format: int64
             * @description The member.
             */
            batch_member_id: number;
        } | {
            /** @enum {string} */
            action: "resume_member";
            /**
             * Format: int64
             * @description The member.
             */
            batch_member_id: number;
        } | {
            /** @enum {string} */
            action: "retry_removal";
            /**
             * Format: int64
             * @description The member.
             */
            batch_member_id: number;
        } | {
            /** @enum {string} */
            action: "skip_step";
            /**
             * Format: int64
             * @description The step.
             */
            step_execution_id: number;
        } | {
            /** @enum {string} */
            action: "cancel_step";
            /**
             * Format: int64
             * @description The step.
             */
            step_execution_id: number;
        } | {
            /** @enum {string} */
            action: "retry_rollback";
            /**
             * Format: int64
             * @description The step.
             */
            step_execution_id: number;
        } | {
            /** @enum {string} */
            action: "retry_init_rollback";
            /**
             * Format: int64
             * @description The init step.
             */
            init_execution_id: number;
        };
        /** @description What one commit changed in a batch: the new states of its rows. */
        BatchChange: {
            /**
             * Format: date-time
             * @description When a node committed it.
             */
            at: string;
            /**
             * Format: int64
             * @description Id of the batch.
             */
            batch: number;
            /** @description How many further rows have changed, by kind and new state, as in `{"step":{"pending":950}}`. */
            left_out?: {
                [key: string]: {
                    [key: string]: number;
                };
            };
            /**
             * @description Rows with another state than before: the batch, phases, init steps, members, steps. At most 50; the others are counted
             *     in `left_out`.
             */
            rows?: components["schemas"]["RowChange"][];
            /** @description Name of its runbook. */
            runbook: string;
            /** @description State of the batch. */
            status: components["schemas"]["BatchStatus"];
        };
        /** @description A batch with its phases and init steps. */
        BatchDetails: components["schemas"]["Batch"] & {
            /** @description Why it waits, what will wake it, and when. */
            explanation: components["schemas"]["Explanation"];
            /** @description Its init steps, in order. */
            init?: components["schemas"]["Step"][];
            /** @description Notices that were sent to people, oldest first; the last 100. */
            notices?: components["schemas"]["Notice"][];
            /** @description Its phases, in due order. */
            phases: components["schemas"]["Phase"][];
            /** @description Phases, init steps and notices that cannot be read; absent when there are none. */
            unreadable?: components["schemas"]["Unreadable"][];
        };
        /** @description Batches, newest first. */
        BatchList: {
            /** @description The batches. */
            batches: components["schemas"]["Batch"][];
            /** @description Cursor of the next page; absent on the last. */
            next_cursor?: string | null;
            /** @description Stored ones that cannot be read. */
            unreadable?: components["schemas"]["Unreadable"][];
        };
        /** @description A request about a batch, and what became of it. */
        BatchRequest: {
            /** @description What was requested. */
            action: string;
            /**
             * Format: date-time
             * @description When it was applied or refused.
             */
            answered_at?: string | null;
            /** @description Id of the API key with which it was requested. */
            by?: string | null;
            /** @description Code of the refusal: `batch-request-refused`, or `not-found` when the batch has no row that it names. */
            code?: string | null;
            /** @description Key of the request, by which it can be looked up for 7 days. */
            key: string;
            /**
             * Format: date-time
             * @description When it was stored.
             */
            posted_at: string;
            /** @description Why it was refused or changed nothing. */
            reason?: string | null;
            /** @description What became of it. */
            state: components["schemas"]["RequestState"];
        };
        /**
         * @description State of a batch.
         * @enum {string}
         */
        BatchStatus: "detected" | "init_dispatched" | "active" | "completed" | "failed" | "cancelled";
        /** @description Something to do with many instances. */
        Bulk: {
            /** @description What to do. */
            action: components["schemas"]["BulkAction"];
            /** @description `next_cursor` of the call before, to go on after it: no instance is touched or counted twice. */
            cursor?: string | null;
            /** @description Only count what would be touched. */
            dry_run?: boolean;
            /** @description All that match this. Either this or `ids` is given, and something in it. */
            filter?: components["schemas"]["BulkFilter"];
            /** @description Delete or restart also what has not ended. */
            force?: boolean;
            /** @description The instances of these ids, in this order; an id that comes twice counts once. */
            ids?: string[];
            /** @description Touch at most this many: newest first, or in the order of `ids`. */
            limit?: number | null;
            /** @description Kept in the histories and in the audit log. */
            reason?: string | null;
        };
        /**
         * @description What to do with many instances.
         * @enum {string}
         */
        BulkAction: "cancel" | "pause" | "resume" | "delete" | "restart" | "retry";
        /** @description Which instances a bulk call touches. All that is given must hold. */
        BulkFilter: {
            /**
             * Format: date-time
             * @description Only created before this time.
             */
            created_before?: string | null;
            /**
             * Format: date-time
             * @description Only created at or after this time.
             */
            created_from?: string | null;
            /** @description Only calls of this function, whatever made them. */
            function?: string | null;
            /** @description Only with all of these labels, each `key=value`; one alone needs no list. */
            label?: string[];
            /** @description Only of this orchestration. */
            orchestration?: string | null;
            /** @description Only ids that start with this. */
            prefix?: string | null;
            /** @description Only in one of these states; one alone needs no list. */
            status?: components["schemas"]["Status"][];
        };
        /**
         * @description Instances that a bulk call left as they are, by the reason. Reasons without instances are
         *     absent.
         */
        BulkLeft: {
            /**
             * @description Calls of batches: their batch decides about them, and keeps them as long as it may look
             *     after them.
             */
            batch_calls?: number;
            /** @description Children, which are deleted with the root of their tree. */
            children?: number;
            /** @description They have ended, so that there is nothing to cancel, pause or resume. */
            ended?: number;
            /** @description They vanished meanwhile, as children do whose root was deleted, or never existed. */
            gone?: number;
            /** @description None of their activities waits for its next attempt. */
            not_waiting?: number;
            /**
             * @description A start of them is refused now: no node has their orchestration, their function is gone, or it does not take their
             *     input any more.
             */
            refused?: number;
            /** @description They or descendants of theirs still run, so that they are neither deleted nor restarted without `force`. */
            running?: number;
            /** @description What is stored of them cannot be read. */
            unreadable?: number;
        };
        /** @description What a bulk call did. */
        BulkResult: {
            /** @description Instances that were changed; 0 in a dry run. */
            changed: number;
            /**
             * @description Instances that matched and were left as they are, or would be in a dry run, by the reason;
             *     absent when there are none.
             */
            left?: components["schemas"]["BulkLeft"];
            /** @description The first of these, each with its reason; at most 20. */
            left_sample?: components["schemas"]["LeftInstance"][];
            /** @description Instances that matched, up to the limit, or up to where the time of one request was over. */
            matched: number;
            /** @description Give this as `cursor` to go on; absent when no more match. */
            next_cursor?: string | null;
            /** @description The first that were changed, or would be in a dry run; at most 20. */
            sample?: string[];
            /** @description Of a dry run: instances that would be changed, as they are now. */
            would_change?: number | null;
        };
        /** @description A message that could not be processed. */
        BusDeadLetter: {
            /**
             * Format: date-time
             * @description When it became a dead letter.
             */
            dead_at: string;
            /**
             * Format: int32
             * @description How often it was delivered.
             */
            delivery_count: number;
            /** @description What happened. */
            description: string;
            /**
             * Format: date-time
             * @description When it was sent.
             */
            enqueued_at: string;
            /** @description Id by which it is resubmitted or deleted. */
            id: string;
            /** @description The message. */
            message: components["schemas"]["BusMessage"];
            /** @description A short code. */
            reason: string;
        };
        /** @description A page of dead letters, oldest first. */
        BusDeadLetterList: {
            /** @description The letters. */
            dead_letters: components["schemas"]["BusDeadLetter"][];
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
            /** @description Rows of this page that cannot be read; absent when there are none. */
            unreadable?: components["schemas"]["Unreadable"][];
        };
        /** @description A message. */
        BusMessage: {
            /** @description The body, as text. */
            body: string;
            /** @description Type of the body; `application/json` without it. */
            content_type?: string;
            /** @description Its id. A message whose id was sent to the topic within 10 minutes is dropped. */
            message_id: string;
            /** @description Properties that subscriptions filter by. */
            properties?: {
                [key: string]: string;
            };
            /**
             * Format: date-time
             * @description Not delivered before this time.
             */
            scheduled_at?: string | null;
            /** @description What it is about. */
            subject?: string | null;
            /**
             * Format: int64
             * @description How long it is delivered, in milliseconds; the subscription's time to live without it.
             */
            time_to_live_ms?: number | null;
        };
        /** @description A page of messages, oldest first. */
        BusMessageList: {
            /** @description The messages. */
            messages: components["schemas"]["StoredBusMessage"][];
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
            /** @description Rows of this page that cannot be read; absent when there are none. */
            unreadable?: components["schemas"]["Unreadable"][];
        };
        /**
         * @description What a message of a subscription waits for.
         * @enum {string}
         */
        BusMessageState: "waiting" | "scheduled" | "locked";
        /** @description A subscription, and how it delivers. */
        BusSubscription: {
            /** @description Messages with these properties are not delivered to it; absent when there are none. */
            except?: {
                [key: string]: string;
            };
            /** @description Properties that messages must have to be delivered to it; all messages without any. */
            filter: {
                [key: string]: string;
            };
            /**
             * Format: int64
             * @description Duration of a lock, in milliseconds.
             */
            lock_ms: number;
            /**
             * Format: int32
             * @description How often a message is delivered before it becomes a dead letter.
             */
            max_deliveries: number;
            /**
             * Format: date-time
             * @description When the oldest dead letter became one; absent when there is none.
             */
            oldest_dead_at?: string | null;
            /**
             * Format: date-time
             * @description When the oldest message was sent that is neither completed nor dead; absent when there is none.
             */
            oldest_enqueued_at?: string | null;
            /** @description Its name. */
            subscription: string;
            /**
             * Format: int64
             * @description Longest time to live of a message, in milliseconds.
             */
            time_to_live_ms: number;
            /** @description Its topic. */
            topic: string;
        };
        /** @description A page of subscriptions, by topic and name. */
        BusSubscriptionList: {
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
            /** @description The subscriptions. */
            subscriptions: components["schemas"]["BusSubscription"][];
            /** @description Rows of this page that cannot be read; absent when there are none. */
            unreadable?: components["schemas"]["Unreadable"][];
        };
        /** @description A call of a function. */
        CallDetails: {
            /**
             * Format: int32
             * @description Number of the attempt that runs or comes next, from 1; that of the last one when the call has ended.
             */
            attempt: number;
            /**
             * Format: date-time
             * @description When nobody waits for it any more.
             */
            deadline?: string | null;
            /**
             * Format: int32
             * @description How often the current attempt was handed out.
             */
            deliveries: number;
            /** @description Failed attempts, oldest first: the last 20. */
            failed_attempts?: components["schemas"]["FailedAttempt"][];
            /** @description The function. */
            function: string;
            /**
             * Format: date-time
             * @description When the worker that holds it was last heard of: a fetch, or a heartbeat.
             */
            heartbeat_at?: string | null;
            /** @description Its input. */
            input: components["schemas"]["Json"];
            /**
             * Format: date-time
             * @description When the lease on the current attempt ends unless it is extended.
             */
            lease_expires_at?: string | null;
            /** @description What made it. */
            made_by: components["schemas"]["MadeBy"];
            /**
             * Format: int32
             * @description Most attempts by its retry policy.
             */
            max_attempts: number;
            pool?: components["schemas"]["CallPool"] | null;
            progress?: components["schemas"]["Json"] | null;
            /**
             * Format: date-time
             * @description When that was stored.
             */
            progress_at?: string | null;
            /**
             * Format: date-time
             * @description When the next attempt may start, if it has to wait.
             */
            retry_at?: string | null;
            /** @description What it waits for. */
            state: components["schemas"]["CallState"];
            /** @description Only workers with this tag take it. */
            tag?: string | null;
            /**
             * @description The same for people, with what is missing: what "it waits for" is followed by. Times are in fields of their own.
             * @example a worker: none has announced `charge`
             */
            waits_for: string;
            /**
             * Format: date-time
             * @description Until when it waits, if that is known: its next attempt, its next delivery, or the end of the throttling of its pool.
             */
            waits_until?: string | null;
            /** @description The worker that holds the current attempt, by the name that it announced. */
            worker?: string | null;
        };
        /** @description The pool that a call goes through, and whether it hands out calls. */
        CallPool: {
            /**
             * @description Its name.
             * @example cloud-01
             */
            name: string;
            /**
             * Format: date-time
             * @description Since when it is paused.
             */
            paused_at?: string | null;
            /** @description Why it is paused, if a reason was given. */
            reason?: string | null;
            /** @description Whether it hands out calls. */
            state: components["schemas"]["CallPoolState"];
            /**
             * Format: date-time
             * @description Until when it hands out nothing because its workers were throttled.
             */
            throttled_until?: string | null;
        };
        /**
         * @description Whether a pool hands out calls.
         * @enum {string}
         */
        CallPoolState: "active" | "paused" | "throttled" | "missing";
        /**
         * @description What a call waits for.
         * @enum {string}
         */
        CallState: "waits_for_worker" | "waits_for_retry" | "delayed" | "held" | "settling" | "paused" | "ended";
        /** @description Cancels a run. */
        CancelRun: {
            /** @description Why, for people. */
            reason?: string | null;
        };
        /** @description Something that happened to an instance. */
        Change: {
            /**
             * Format: date-time
             * @description When a node noticed that it was committed.
             */
            at: string;
            /** @description What happened. */
            change: components["schemas"]["ChangeKind"];
            /**
             * Format: int64
             * @description In which execution.
             */
            execution: number;
            /** @description The function that it calls; absent for an orchestration. */
            function?: string | null;
            /** @description The instance. */
            id: string;
            kind?: components["schemas"]["Kind"] | null;
            /** @description Labels. */
            labels?: {
                [key: string]: string;
            };
            /** @description The orchestration, `invoke` for a call of a function. */
            orchestration?: string | null;
            /** @description The state that it led to. */
            status: components["schemas"]["Status"];
        };
        /**
         * @description What happened to an instance.
         * @enum {string}
         */
        ChangeKind: "started" | "status_changed" | "paused" | "resumed" | "continued_as_new" | "completed" | "failed" | "cancelled";
        /**
         * @description State of a chunk.
         * @enum {string}
         */
        ChunkStatus: "planned" | "running" | "succeeded" | "failed";
        /** @description Clears tasks that have ended, so that they run again in the same run. */
        ClearTasks: {
            /** @description Whether everything downstream runs again as well; otherwise only what was left out because of these tasks. */
            downstream?: boolean;
            /** @description Keys of the tasks. */
            tasks: string[];
        };
        /** @description A result. */
        CompleteWork: {
            /** @description The lease. */
            lease: string;
            /** @description The result. */
            result?: components["schemas"]["Json"];
        };
        /** @description Counts over the whole store. */
        Counts: {
            /**
             * Format: int64
             * @description That were cancelled.
             */
            cancelled: number;
            /**
             * Format: int64
             * @description That completed.
             */
            completed: number;
            /**
             * Format: int64
             * @description All events.
             */
            events: number;
            /**
             * Format: int64
             * @description All executions.
             */
            executions: number;
            /**
             * Format: int64
             * @description That failed.
             */
            failed: number;
            /**
             * Format: int64
             * @description All instances.
             */
            instances: number;
            /**
             * Format: int64
             * @description That are held.
             */
            paused: number;
            /**
             * Format: int64
             * @description Whose start lies ahead.
             */
            pending: number;
            /**
             * Format: int64
             * @description That run.
             */
            running: number;
        };
        /** @description An action to be made. */
        CreateAction: {
            /** @description What people call it; the name of the function or orchestration without it. */
            label?: string | null;
            /** @description Namespace, if it is not in the query. */
            namespace?: string | null;
            /**
             * Format: date-time
             * @description When it is due; at once without it.
             */
            next_tick_at?: string | null;
            /** @description What becomes of it when it is running and its process goes down. */
            on_restart?: components["schemas"]["OnRestart"];
            /** @description The orchestration to start, in place of a function. */
            orchestration?: string | null;
            /**
             * Format: int64
             * @description Whether it is done again, this many seconds after the time that it was due.
             */
            recurrence_secs?: number | null;
            /** @description Tenant, if it is not in the query. */
            tenant?: string | null;
            tool_input?: components["schemas"]["Json"] | null;
            /**
             * @description The function. Give either this or `orchestration`.
             * @example echo
             */
            tool_name?: string | null;
        };
        /** @description A backfill that is to be created. */
        CreateBackfill: {
            /**
             * Format: int32
             * @description Partitions of one run; 10 by default.
             */
            chunk_size?: number | null;
            /** @description Name of the DAG, which has `partitioned_by`. */
            dag: string;
            /**
             * Format: int32
             * @description Runs at a time; 2 by default.
             */
            max_concurrent_runs?: number | null;
            /** @description Parameters of its runs. */
            params?: Record<string, never>;
            /**
             * @description Its partitions: `FIRST..LAST` with both ends, one key, or `*` for all up to now.
             * @example 2026-10-01..2026-10-30
             */
            partitions: string;
        };
        /** @description A batch that is to be created. */
        CreateBatch: {
            /**
             * Format: date-time
             * @description Reference time of the phases. A batch without one is advanced by hand, phase by phase.
             */
            batch_start_time?: string | null;
            /** @description Members as objects: names are columns. */
            members?: {
                [key: string]: unknown;
            }[];
            /** @description Members as CSV text whose first line has the names of the columns. */
            members_csv?: string | null;
            /** @description Name of the runbook. */
            runbook: string;
            /**
             * Format: int32
             * @description Version of the runbook; the active one by default.
             */
            version?: number | null;
        };
        /** @description A new key. */
        CreateKey: {
            /**
             * Format: date-time
             * @description When it ceases to work; never without it.
             */
            expires_at?: string | null;
            /** @description Where it is good. */
            grants: components["schemas"]["Grant"][];
            /** @description What it is for, for people. */
            name: string;
            /** @description What its holder may do. */
            role: components["schemas"]["Role"];
        };
        /** @description A backfill that was created. */
        CreatedBackfill: {
            /** @description Id of the backfill. */
            id: string;
            /** @description Whether reads show the backfill already. It is started in any case. */
            is_visible: boolean;
            /**
             * Format: int32
             * @description Number of its partitions.
             */
            total_partitions: number;
        };
        /** @description A new key with its secret, which is shown only once. */
        CreatedKey: {
            /** @description All else about it. */
            key: components["schemas"]["Key"];
            /** @description The key itself: give it as `Authorization: Bearer …`. */
            secret: string;
        };
        /** @description The custom status. */
        CustomStatus: {
            /** @description Whether the instance has ended: there will be no further change. */
            ended: boolean;
            status?: components["schemas"]["Json"] | null;
            /**
             * Format: int64
             * @description Its version, to wait for the next change.
             */
            version: number;
        };
        /** @description A DAG. */
        Dag: {
            /**
             * Format: int32
             * @description Version that new runs follow.
             */
            active_version: number;
            /**
             * Format: date-time
             * @description When the first version was published.
             */
            created_at: string;
            /** @description What it is for. */
            description?: string | null;
            /** @description Whether its schedule, its sensors and its backfills start no runs. */
            is_paused: boolean;
            /**
             * @description Name of the DAG.
             * @example daily-sales
             */
            name: string;
            /**
             * Format: date-time
             * @description When it was changed last.
             */
            updated_at: string;
            /** @description Id of the API key with which it was changed last. */
            updated_by?: string | null;
        };
        /** @description A DAG with the tasks of its active version. */
        DagDetails: components["schemas"]["Dag"] & {
            /**
             * Format: int32
             * @description How many runs may be under way at a time; absent without a limit.
             */
            max_concurrent_runs?: number | null;
            /** @description Parameters of its runs. */
            params?: components["schemas"]["DagParam"][];
            /** @description The partition definition of which every run has one key. */
            partitioned_by?: string | null;
            /** @description When it runs by itself, in words; absent without a schedule. */
            schedule?: string | null;
            /** @description Its sensors, and how far each is. */
            sensors?: components["schemas"]["DagSensor"][];
            /** @description Its first 1,000 tasks, as in the document. */
            tasks: components["schemas"]["DagTask"][];
            /**
             * Format: int32
             * @description Number of its tasks.
             */
            tasks_total: number;
        };
        /** @description DAGs by name. */
        DagList: {
            /** @description The DAGs. */
            dags: components["schemas"]["Dag"][];
            /** @description Cursor of the next page; absent on the last. */
            next_cursor?: string | null;
            /** @description Stored ones that cannot be read. */
            unreadable?: components["schemas"]["Unreadable"][];
        };
        /** @description A parameter of the runs of a DAG. */
        DagParam: {
            default?: components["schemas"]["Json"] | null;
            /** @description What it is for. */
            description?: string | null;
            /** @description Its name. */
            name: string;
        };
        /** @description A sensor of a DAG: a function that is polled for reasons to start runs. */
        DagSensor: {
            /** @description Where the next poll continues. */
            cursor?: string | null;
            /**
             * Format: int32
             * @description Polls that have failed since the last one that did not. Each of them doubles the time to the next poll, up to an hour.
             */
            failures?: number;
            /** @description The function that is polled. */
            function: string;
            /** @description The time between two polls, such as `1m`. */
            interval: string;
            /** @description Why the last poll failed. */
            last_error?: string | null;
            /**
             * Format: date-time
             * @description When it was polled last.
             */
            last_polled_at?: string | null;
            /** @description What the last poll came to: `triggered`, `no_new_data` or `error`; absent before the first. */
            last_status?: string | null;
            /** @description Its name. */
            name: string;
            /**
             * Format: date-time
             * @description When it is polled next; absent while the DAG is paused.
             */
            next_poll_at?: string | null;
        };
        /** @description A task of a DAG. */
        DagTask: {
            /** @description The asset that it makes. */
            asset?: string | null;
            /** @description Keys of the tasks that come first. */
            depends_on?: string[];
            /** @description The function that it calls. */
            function?: string | null;
            /** @description Key of the task, unique within its DAG. */
            key: string;
            /** @description The orchestration that it starts. */
            orchestration?: string | null;
        };
        /** @description A version of a DAG. Versions never change. */
        DagVersion: {
            /**
             * Format: date-time
             * @description When it was published.
             */
            created_at: string;
            /** @description Id of the API key with which it was published. */
            created_by?: string | null;
            /** @description The document; absent in lists. */
            document?: string | null;
            /** @description Whether new runs follow it. */
            is_active: boolean;
            /** @description Whether publishing changed something; only in the answer to publishing. */
            is_new?: boolean | null;
            /** @description Name of the DAG. */
            name: string;
            /**
             * Format: int32
             * @description Number of its tasks; absent in lists.
             */
            tasks?: number | null;
            /**
             * Format: int32
             * @description The version, from 1.
             */
            version: number;
            /** @description What its author probably did not intend; only in the answer to publishing. */
            warnings?: string[];
        };
        /** @description Versions of a DAG, oldest first. */
        DagVersionList: {
            /** @description Cursor of the next page; absent on the last. */
            next_cursor?: string | null;
            /** @description Stored ones that cannot be read. */
            unreadable?: components["schemas"]["Unreadable"][];
            /** @description The versions. */
            versions: components["schemas"]["DagVersion"][];
        };
        /** @description What a cron expression means where clocks are put forward or back. */
        Daylight: {
            /**
             * @description For local times that do not exist.
             * @default shift
             */
            gap?: components["schemas"]["DaylightGap"];
            /**
             * @description For local times that come twice.
             * @default first
             */
            overlap?: components["schemas"]["DaylightOverlap"];
        };
        /**
         * @description What becomes of local times that do not exist.
         * @enum {string}
         */
        DaylightGap: "shift" | "skip";
        /**
         * @description When local times happen that come twice.
         * @enum {string}
         */
        DaylightOverlap: "first" | "last" | "both";
        /** @description Something that was given up. */
        DeadLetter: {
            /**
             * Format: int32
             * @description How often it was delivered.
             */
            deliveries: number;
            /**
             * Format: int64
             * @description The execution of the instance, if it is known.
             */
            execution?: number | null;
            /**
             * Format: date-time
             * @description When it is forgotten.
             */
            expires_at?: string | null;
            /**
             * Format: date-time
             * @description When it was given up.
             */
            given_up_at: string;
            /** @description Its id. */
            id: string;
            /** @description The instance that it was for. */
            instance: string;
            /**
             * @description Name of the activity, function or orchestration, or what the message was: `signal approved`. Absent for messages in
             *     lists.
             */
            name?: string | null;
            payload?: components["schemas"]["Json"] | null;
            /** @description What it carried, in base64, if it cannot be read; only of one letter. */
            raw?: string | null;
            /** @description Why. */
            reason: string;
            /** @description What was given up. */
            what: components["schemas"]["GivenUp"];
        };
        /** @description A page of dead letters, newest first. */
        DeadLetterList: {
            /** @description The letters, without what they carried. */
            dead_letters: components["schemas"]["DeadLetter"][];
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
            /** @description Rows of this page that cannot be read; absent when there are none. */
            unreadable?: components["schemas"]["Unreadable"][];
        };
        /** @description A decision about members whose removal waits for approval. */
        DecideRemoval: {
            /**
             * Format: int64
             * @description `set` of the pending removal that was shown.
             */
            set: number;
        };
        /** @description What was deleted. */
        Deleted: {
            /**
             * Format: int64
             * @description Events.
             */
            events: number;
            /**
             * Format: int64
             * @description Instances, descendants included.
             */
            instances: number;
            /**
             * Format: int64
             * @description Queued messages.
             */
            queued_messages: number;
        };
        /** @description What an erasure removed. */
        Erased: {
            /**
             * Format: int64
             * @description Files that were rewritten or removed.
             */
            files: number;
            /** @description Of the archive of a tenant: what the caller may not erase, so that it is still there. */
            kept?: components["schemas"]["ArchivedGroup"][];
            /**
             * Format: int64
             * @description Rows that are gone; 0 where whole files were removed unread.
             */
            rows: number;
        };
        /** @description Answers to calls that a worker holds, and what it asks for next, in one request. */
        ExchangeWork: {
            /** @description What to do with leases, in any order; each is the body of the single call of its name. */
            answers?: components["schemas"]["WorkAnswer"][];
            /** @description As in `POST /v1/work/fetch`. */
            functions?: string[];
            /**
             * Format: int64
             * @description As in `POST /v1/work/fetch`.
             */
            lease_ms?: number;
            /** @description At most this many calls; none with 0. */
            max_items?: number;
            /**
             * Format: int64
             * @description Number of this exchange, up to 2^53 - 1: any that the worker has not used before. A request
             *     that is repeated has the number of the first one and gets its answer. Take the time in
             *     milliseconds for the first, so that a worker that was started again uses no number twice.
             */
            number: number;
            /**
             * @description As in `POST /v1/work/fetch`.
             * @example cloud-01
             */
            pool?: string | null;
            /** @description As in `POST /v1/work/fetch`. */
            tags?: string[];
            /** @description As in `POST /v1/work/fetch`. */
            untagged?: boolean;
            /**
             * Format: int64
             * @description How long to wait for work when there is none. A request with answers does not wait.
             */
            wait_ms?: number;
            /**
             * @description Name of the worker: letters, digits and `-_.:`.
             * @example render-3
             */
            worker: string;
        };
        /** @description What became of the answers, and the next calls. */
        ExchangedWork: {
            /** @description Calls that the worker has leased, oldest first. */
            items: components["schemas"]["WorkItem"][];
            /** @description One for each answer, in their order. */
            outcomes: components["schemas"]["AnswerOutcome"][];
        };
        /** @description One execution. */
        Execution: {
            /**
             * Format: date-time
             * @description When it ended.
             */
            completed_at?: string | null;
            /**
             * Format: int64
             * @description How many events it has.
             */
            events: number;
            /**
             * Format: int64
             * @description Its number, from 1.
             */
            execution: number;
            /**
             * Format: date-time
             * @description When it started.
             */
            started_at: string;
            /** @description Its state. */
            status: components["schemas"]["Status"];
        };
        /** @description A page of the executions of an instance, newest first. */
        ExecutionList: {
            /** @description Descending by number. */
            executions: components["schemas"]["Execution"][];
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
            /** @description Executions whose rows cannot be read, by number. */
            unreadable?: components["schemas"]["Unreadable"][];
        };
        /** @description Why a row waits. */
        Explanation: {
            /** @description What releases it; absent if it has ended or waits for nothing. */
            released_by?: string | null;
            /**
             * Format: date-time
             * @description When it wakes by itself.
             */
            wakes_at?: string | null;
            /** @description A sentence. */
            why: string;
        };
        /** @description A failure. The retry policy of the call decides what follows. */
        FailWork: {
            /** @description What sort of failure it is. */
            category?: components["schemas"]["FailureCategory"];
            /** @description A stable word for programs. */
            code?: string | null;
            details?: components["schemas"]["Json"] | null;
            /** @description The lease. */
            lease: string;
            /** @description What happened, for people. */
            message: string;
            /**
             * Format: int64
             * @description How long to wait before the next attempt, at least, in milliseconds.
             */
            retry_after_ms?: number | null;
            /** @description Whether another attempt may succeed; by the category without it: application, timeout and infrastructure may. */
            retryable?: boolean | null;
        };
        /** @description An attempt that failed. */
        FailedAttempt: {
            /**
             * Format: int32
             * @description Its number, from 1.
             */
            attempt: number;
            /**
             * Format: date-time
             * @description When its failure was recorded.
             */
            failed_at: string;
            /** @description Why; a long message is cut. */
            failure: components["schemas"]["Failure"];
            /**
             * Format: date-time
             * @description When the next one may start; absent after the last.
             */
            retry_at?: string | null;
        };
        /** @description How something failed. */
        Failure: {
            /** @description `application`, `timeout`, `cancelled`, `configuration`, `infrastructure` or `poison`. */
            category: string;
            /** @description A stable word for programs. */
            code?: string | null;
            details?: components["schemas"]["Json"] | null;
            /** @description What happened, for people. */
            message: string;
            /** @description Whether another attempt may succeed. */
            retryable: boolean;
        };
        /**
         * @description Sort of a failure that a worker may report.
         * @enum {string}
         */
        FailureCategory: "application" | "timeout" | "cancelled" | "configuration" | "infrastructure";
        /** @description Failures with one code. */
        FailureStats: {
            /** @description The code. */
            code: string;
            /**
             * Format: int64
             * @description How many.
             */
            count: number;
        };
        /** @description What a worker asks for. */
        FetchWork: {
            /** @description Functions that it runs: 1 to 32. With `pool`, those of the pool that it has, up to 1,000; they may be called from then on. */
            functions?: string[];
            /**
             * Format: int64
             * @description For how long each call is leased unless a heartbeat extends it.
             */
            lease_ms?: number;
            /** @description At most this many calls. */
            max_items?: number;
            /**
             * @description Take calls of this pool, whatever their function, and no other.
             * @example cloud-01
             */
            pool?: string | null;
            /** @description Also take calls with one of these tags. */
            tags?: string[];
            /** @description Whether to take calls without a tag. */
            untagged?: boolean;
            /**
             * Format: int64
             * @description How long to wait for work when there is none.
             */
            wait_ms?: number;
            /**
             * @description Name of the worker, for people: letters, digits and `-_.:`.
             * @example render-3
             */
            worker: string;
        };
        /** @description Calls that the worker has leased. */
        FetchedWork: {
            /** @description The calls, oldest first; none when the time was up. */
            items: components["schemas"]["WorkItem"][];
        };
        /** @description What is wrong with one field. */
        FieldProblem: {
            /** @description What is wrong with it. */
            detail: string;
            /** @description Which field: a name with dots, as in `filter.status`. */
            field: string;
        };
        /** @description The data of an event: `change` has the first form, `batch` the second, `run` the third. */
        FollowedChange: components["schemas"]["Change"] | components["schemas"]["BatchChange"] | components["schemas"]["RunChange"];
        /** @description A function. */
        Function: {
            /** @description The declaration, as the guide's page "functions" describes it. Secrets in it are references. */
            declaration: components["schemas"]["Json"];
            /**
             * @description Its name.
             * @example thumbnail
             */
            name: string;
            /** @description Where it is declared. */
            origin: components["schemas"]["FunctionOrigin"];
            /**
             * Format: int64
             * @description Changes with every write; also the `ETag`. Only stored functions have one.
             */
            version?: number | null;
        };
        /** @description A page of functions, by name. */
        FunctionList: {
            /** @description The functions. */
            functions: components["schemas"]["Function"][];
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
            /** @description Rows of this page that cannot be read; absent when there are none. */
            unreadable?: components["schemas"]["Unreadable"][];
        };
        /** @description What a tool wrote to stderr in one attempt. */
        FunctionLog: {
            /**
             * Format: int32
             * @description The attempt, from 1.
             */
            attempt: number;
            /** @description Idempotency key of the call. */
            call: string;
            /** @description Whether the beginning is missing. */
            is_cut: boolean;
            /** @description The end of what the tool wrote, without secrets. */
            text: string;
            /**
             * Format: int64
             * @description How much the tool wrote in all.
             */
            total_bytes: number;
        };
        /** @description A page of the logs of one instance. */
        FunctionLogList: {
            /** @description By call, and by attempt as text: 1, 10, 2. */
            logs: components["schemas"]["FunctionLog"][];
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
            /** @description Rows of this page that cannot be read; absent when there are none. */
            unreadable?: components["schemas"]["Unreadable"][];
        };
        /**
         * @description Where a function is declared.
         * @enum {string}
         */
        FunctionOrigin: "configured" | "stored";
        /**
         * @description What was given up.
         * @enum {string}
         */
        GivenUp: "message" | "turn" | "activity";
        /** @description Where a key is good. `*` stands for every namespace or tenant. */
        Grant: {
            /** @description A namespace or `*`. */
            namespace: string;
            /** @description A tenant or `*`. */
            tenant: string;
        };
        /** @description Whether a node is up. */
        Health: {
            /** @description `ok`. */
            status: string;
            /** @description What does not work although the server does, such as writing to the archive. */
            warnings?: string[];
        };
        /** @description A sign of life. */
        Heartbeat: {
            /**
             * Format: int64
             * @description Until so many milliseconds from now.
             */
            extend_ms?: number;
            /** @description The lease. */
            lease: string;
            progress?: components["schemas"]["Json"] | null;
        };
        /**
         * @description What a worker is to do.
         * @enum {string}
         */
        HeartbeatAction: "continue" | "cancel";
        /** @description The answer to a sign of life. */
        HeartbeatAnswer: {
            /** @description What to do. */
            action: components["schemas"]["HeartbeatAction"];
            /** @description The extended lease, if the worker is to go on. */
            lease?: string | null;
            /**
             * Format: date-time
             * @description When it ends.
             */
            lease_expires_at?: string | null;
            /** @description Why it is to stop: `cancelled` or `timed-out`. */
            reason?: string | null;
        };
        /** @description A member whose removal waits for approval. */
        HeldMember: {
            /**
             * Format: int64
             * @description Its batch.
             */
            batch_id: number;
            /** @description Its key, in small letters. */
            member_key: string;
        };
        /** @description Events of one execution. */
        History: {
            /** @description Whether the events are in the archive: retention has removed them from the store. */
            archived?: boolean;
            /** @description Its events, ascending. */
            events: components["schemas"]["HistoryEvent"][];
            /**
             * Format: int64
             * @description The execution.
             */
            execution: number;
            /**
             * Format: int64
             * @description Give this as `after` for the next page; absent on the last one.
             */
            next_after?: number | null;
            /** @description Events that cannot be read. */
            unreadable?: components["schemas"]["UnreadableEvents"][];
        };
        /** @description One recorded fact. */
        HistoryEvent: {
            /**
             * Format: date-time
             * @description When it was recorded.
             */
            at: string;
            /** @description The fields of the kind. */
            data: components["schemas"]["Json"];
            /**
             * Format: int64
             * @description Place in the history, from 1, without gaps.
             */
            id: number;
            /**
             * @description What happened; the kinds and their fields are listed in the guide, page "history format".
             * @example ActivityScheduled
             */
            kind: string;
        };
        /** @description A route. */
        Hook: {
            /** @description The declaration, as the guide's page "webhooks" describes it. Secrets in it are references. */
            declaration: components["schemas"]["Json"];
            /**
             * @description Its name.
             * @example github
             */
            name: string;
            /**
             * @description Where senders post to, on the server's address.
             * @example /v1/hooks/default/github
             */
            path: string;
            /**
             * Format: int64
             * @description Changes with every write; also the `ETag`.
             */
            version: number;
        };
        /** @description An action that was made of a payload. */
        HookAction: {
            /** @description Its id. */
            id: string;
            /** @description The instance that runs it, or ran it. */
            instance?: string | null;
            /** @description Why it failed. */
            reason?: string | null;
            result?: components["schemas"]["Json"] | null;
            /** @description `pending`, `running`, `completed` or `failed`; `unknown` when it is kept no longer. */
            status: string;
        };
        /** @description What became of a request, as it is logged. */
        HookEvent: {
            /**
             * Format: date-time
             * @description When it was.
             */
            at: string;
            /**
             * Format: int64
             * @description Length of the body.
             */
            body_bytes: number;
            /** @description What the sender said that the body is. */
            content_type?: string | null;
            /** @description Its id. */
            id: string;
            /** @description What became of it. */
            outcome: components["schemas"]["HookOutcome"];
            /** @description The payload, if it was kept. */
            payload?: string | null;
            /** @description The route. */
            route: string;
            /**
             * Format: int64
             * @description Grows with every event.
             */
            seq: number;
        };
        /** @description A page of events, newest first. */
        HookEventList: {
            /** @description The events. */
            events: components["schemas"]["HookEvent"][];
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
            /** @description Rows of this page that cannot be read; absent when there are none. */
            unreadable?: components["schemas"]["Unreadable"][];
        };
        /** @description A page of routes, by name. */
        HookList: {
            /** @description The routes. */
            hooks: components["schemas"]["Hook"][];
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
            /** @description Rows of this page that cannot be read; absent when there are none. */
            unreadable?: components["schemas"]["Unreadable"][];
        };
        /** @description What became of a request. */
        HookOutcome: {
            /** @description The action that it became. */
            action?: string | null;
            /**
             * Format: int64
             * @description How many were refused for the same reason in about a second.
             */
            count?: number | null;
            /** @description The payload that came first, if it has come before. */
            first?: string | null;
            /** @description The function that the action calls. */
            function?: string | null;
            /** @description `routed`, `stored`, `filtered`, `deduplicated`, `dispatch_error`, `replayed` or `refused`. */
            kind: string;
            /** @description The orchestration that the action starts. */
            orchestration?: string | null;
            /** @description Why it was refused, or no call could be made of it. */
            reason?: string | null;
        };
        /** @description What is kept of a request, without its body. */
        HookPayload: {
            /**
             * Format: int64
             * @description Length of the body.
             */
            body_bytes: number;
            /** @description What the sender said that the body is. */
            content_type?: string | null;
            /** @description Its id. */
            id: string;
            /** @description What became of it at first. */
            outcome: components["schemas"]["HookOutcome"];
            /**
             * Format: date-time
             * @description When it came.
             */
            received_at: string;
            /** @description The route. */
            route: string;
        };
        /** @description All of a payload, and what became of the actions that were made of it. */
        HookPayloadDetail: {
            /** @description The first action and the last replays. */
            actions: components["schemas"]["HookAction"][];
            /** @description The body, byte for byte, in base64. */
            body_base64: string;
            /** @description The headers that the route keeps. */
            headers: {
                [key: string]: string;
            };
            /** @description Query parameters. */
            params: {
                [key: string]: string;
            };
            /** @description What is also in the listing. */
            payload: components["schemas"]["HookPayload"];
        };
        /** @description A page of payloads, newest first. */
        HookPayloadList: {
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
            /** @description The payloads. */
            payloads: components["schemas"]["HookPayload"][];
            /** @description Rows of this page that cannot be read; absent when there are none. */
            unreadable?: components["schemas"]["Unreadable"][];
        };
        /** @description Whether a route would take a request, and how to make one. */
        HookTested: {
            /** @description Whether it would be taken now. */
            accepted: boolean;
            /** @description A command for a shell that sends this body, signed as the route wants it. It takes the secret from the variable `SECRET`. */
            curl: string;
            /** @description The same for people. It says nothing about secrets. */
            detail?: string | null;
            /** @description Why not, in a word, as in the events of the route. */
            reason?: string | null;
        };
        /** @description An instance. */
        Instance: {
            /** @description Whether it is in the archive: retention has removed it from the store. */
            archived?: boolean;
            call?: components["schemas"]["CallDetails"] | null;
            /**
             * Format: date-time
             * @description When it ended.
             */
            completed_at?: string | null;
            /**
             * Format: date-time
             * @description When it was created.
             */
            created_at: string;
            custom_status?: components["schemas"]["Json"] | null;
            /**
             * Format: int64
             * @description Raised by every change of the custom status.
             */
            custom_status_version: number;
            /**
             * Format: int64
             * @description Number of the current execution, from 1.
             */
            execution: number;
            failure?: components["schemas"]["Failure"] | null;
            /** @description The function that it calls; absent for an orchestration. */
            function?: string | null;
            /** @description Its id. */
            id: string;
            kind?: components["schemas"]["Kind"] | null;
            /** @description Labels. */
            labels?: {
                [key: string]: string;
            };
            /** @description Its namespace. */
            namespace: string;
            /** @description Name of its orchestration, `invoke` for a call of a function; absent until its first turn. */
            orchestration?: string | null;
            /** @description Id of its parent. */
            parent?: string | null;
            /** @description Why it is paused. */
            pause_reason?: string | null;
            result?: components["schemas"]["Json"] | null;
            /**
             * Format: int64
             * @description Raised by every commit; also its `ETag`.
             */
            revision: number;
            /**
             * Format: date-time
             * @description When its delayed start is due, while it is pending.
             */
            start_at?: string | null;
            /** @description State. */
            status: components["schemas"]["Status"];
            /** @description Its tenant. */
            tenant: string;
            /** @description What of its stored data cannot be read, and why. */
            unreadable?: string | null;
            /**
             * Format: date-time
             * @description When something was last committed for it.
             */
            updated_at: string;
            /** @description Version of its orchestration. */
            version?: string | null;
        };
        /** @description How many there are. */
        InstanceCounts: {
            /** @description Most first, at most 100; the others are under `(others)`. */
            counts: components["schemas"]["NamedCount"][];
            /**
             * Format: int64
             * @description Instances that were looked at, newest first.
             */
            examined: number;
            /**
             * Format: date-time
             * @description When the oldest instance was created that was looked at.
             */
            oldest?: string | null;
            /**
             * Format: int64
             * @description All of them together.
             */
            total: number;
            /**
             * @description Whether older instances were not looked at, because of `limit` or because it took too long: the counts are those of
             *     the newest instances then.
             */
            truncated?: boolean;
        };
        /** @description What an instance waits for. */
        InstanceExplanation: {
            /** @description Whether that is all: the history was read to its end, and `waits` was not cut. */
            complete: boolean;
            /**
             * Format: int64
             * @description The execution that waits.
             */
            execution: number;
            /** @description The instance. */
            id: string;
            /**
             * @description All of it in a sentence for people. Times are in fields of their own.
             * @example Waits for the signal `approved` or a timer.
             */
            in_words: string;
            /**
             * Format: date-time
             * @description The next time at which something happens by itself: a timer, a retry, the start.
             */
            next_wake_up?: string | null;
            /** @description Its state. */
            status: components["schemas"]["Status"];
            /** @description What it waits for, oldest first; at most 200. */
            waits: components["schemas"]["InstanceWait"][];
        };
        /** @description A page of instances, newest first. */
        InstanceList: {
            /** @description The instances. */
            instances: components["schemas"]["Instance"][];
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
            /** @description Instances whose rows cannot be read. Whether they meet the filters is not known. */
            unreadable?: components["schemas"]["Unreadable"][];
        };
        /** @description Something that an instance waits for. */
        InstanceWait: {
            /**
             * Format: int32
             * @description Number of the attempt that runs or comes next.
             */
            attempt?: number | null;
            /** @description The child. */
            child?: string | null;
            /** @description The same in words, which complete "it waits for". */
            detail: string;
            /**
             * Format: int64
             * @description The event that began it.
             */
            event?: number | null;
            /** @description What it is. */
            kind: components["schemas"]["WaitKind"];
            /** @description Its name: of the activity or function, signal or mailbox, or of the child's orchestration. */
            name?: string | null;
            /**
             * Format: date-time
             * @description Since when.
             */
            since: string;
            state?: components["schemas"]["WaitState"] | null;
            /** @description Only workers with this tag take it. */
            tag?: string | null;
            /**
             * Format: date-time
             * @description Until when, if that is known: when a timer fires, the next attempt may start, or a lease
             *     ends.
             */
            until?: string | null;
            /** @description The worker that holds it, by the name that it announced. */
            worker?: string | null;
        };
        /**
         * @description A call of a function. What it leaves out is as the function's declaration says.
         *
         *     Durations are texts such as `30s`, `10m` or `1h30m`.
         */
        Invoke: {
            /**
             * @description Longest time of all attempts and the pauses between them.
             * @example 10m
             */
            deadline?: string | null;
            /**
             * @description The function.
             * @example echo
             */
            function: string;
            /**
             * @description Longest silence of an attempt.
             * @example 30s
             */
            heartbeat_timeout?: string | null;
            /** @description Its input; `null` without it. */
            input?: components["schemas"]["Json"];
            /**
             * @description The caller's name for this call: the same key is the same call, however often it is made. Without it, the
             *     `Idempotency-Key` is taken; without that, every request is a call of its own.
             */
            key?: string | null;
            /** @description Labels to find it by. */
            labels?: {
                [key: string]: string;
            };
            /**
             * @description The pool whose workers run it. Its allow-list says which functions there are; none has to be declared.
             * @example cloud-01
             */
            pool?: string | null;
            retry?: components["schemas"]["RetryPolicy"] | null;
            /** @description Only workers with this tag take it. */
            tag?: string | null;
            /**
             * @description Longest time of one attempt.
             * @example 30s
             */
            timeout?: string | null;
        };
        /** @description Any JSON value. */
        Json: unknown;
        /** @description A key, without its secret. */
        Key: {
            /**
             * Format: date-time
             * @description When it was made.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it ceases to work.
             */
            expires_at?: string | null;
            /** @description Where it is good. */
            grants: components["schemas"]["Grant"][];
            /** @description Its id, the middle part of the key. */
            id: string;
            /**
             * Format: date-time
             * @description When it was last used, to the minute.
             */
            last_used_at?: string | null;
            /** @description What it is for. */
            name: string;
            /** @description What its holder may do. */
            role: components["schemas"]["Role"];
        };
        /** @description All keys. */
        KeyList: {
            /** @description Ascending by id. */
            keys: components["schemas"]["Key"][];
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
            /** @description Rows of this page that cannot be read; absent when there are none. */
            unreadable?: components["schemas"]["Unreadable"][];
        };
        /**
         * @description What made an instance.
         * @enum {string}
         */
        Kind: "call" | "action" | "schedule" | "hook" | "runbook" | "dag";
        /** @description Something that is wrong. */
        KnownProblem: {
            /**
             * Format: int64
             * @description How many there are.
             */
            count: number;
            /** @description Parts of the count, most first, at most 20. */
            items?: components["schemas"]["ProblemItem"][];
            /** @description What. */
            kind: components["schemas"]["ProblemKind"];
            /** @description Where it is listed. */
            link: components["schemas"]["ProblemLink"];
            /** @description Whether there are more than were counted. */
            more?: boolean;
            /**
             * Format: date-time
             * @description Since when it has been so, for the oldest of those that were counted.
             */
            oldest?: string | null;
            /** @description How bad it is. */
            severity: components["schemas"]["Severity"];
            /** @description What it is, for people, to be read behind the count. */
            text: string;
        };
        /** @description An instance that a bulk call left as it is. */
        LeftInstance: {
            /** @description Its id. */
            id: string;
            /** @description Why, in words for people. */
            reason: string;
        };
        /** @description An asset upstream or downstream of another. */
        LineageAsset: {
            /** @description Its key. */
            asset: string;
            /**
             * Format: int32
             * @description How many edges away.
             */
            distance: number;
            /** @description Whether the edge is declared with the asset, or follows from the dependencies of tasks. */
            is_declared: boolean;
            /** @description Which partitions belong to each other: `same`, `window` or `all`. */
            mapping: string;
            /** @description Its partitions that belong to the one in question, with the runs that have made them. */
            partitions?: components["schemas"]["LineagePartition"][];
            /** @description Tasks that make it. */
            producers: components["schemas"]["AssetTask"][];
            /** @description The neighbour by which it was found. */
            via: string;
        };
        /** @description A partition in a lineage. */
        LineagePartition: {
            /** @description Its key; empty for an asset without partitions. */
            partition: string;
            state?: components["schemas"]["AssetPartition"] | null;
        };
        /** @description A lock that was extended. */
        LockRenewed: {
            /**
             * Format: date-time
             * @description Its new end.
             */
            locked_until: string;
        };
        /** @description A message that the receiver has locked. */
        LockedMessage: components["schemas"]["BusMessage"] & {
            /**
             * Format: int32
             * @description How often it was delivered, this time included.
             */
            delivery_count: number;
            /**
             * Format: date-time
             * @description When it was sent.
             */
            enqueued_at: string;
            /** @description Token by which the lock is renewed and the message settled. */
            lock: string;
            /**
             * Format: date-time
             * @description End of the lock.
             */
            locked_until: string;
        };
        /** @description What made a call. */
        MadeBy: {
            /** @description Id of the action or recurring action, or of what a room made it for. */
            id?: string | null;
            /** @description What it was. */
            kind: components["schemas"]["Kind"];
            /**
             * Format: date-time
             * @description The scheduled time of the occurrence.
             */
            time?: string | null;
        };
        /** @description Sets the state of a task by hand. */
        MarkTask: {
            output?: components["schemas"]["Json"] | null;
            /** @description Why, for people. */
            reason?: string | null;
            /** @description Its new state. */
            status: components["schemas"]["MarkedStatus"];
        };
        /**
         * @description States that can be set by hand.
         * @enum {string}
         */
        MarkedStatus: "succeeded" | "failed" | "skipped";
        /** @description Who a caller is, and what it may do. */
        Me: {
            /** @description How callers of this server show who they are. */
            authentication: components["schemas"]["Authentication"];
            /** @description Where. */
            grants: components["schemas"]["Grant"][];
            /** @description Id of the key; absent on a server without keys. */
            key?: string | null;
            /** @description What the caller may do, by its role and grants. */
            may: components["schemas"]["Permission"][];
            /** @description The namespace that stands for the caller where a request names none: the first of its grants. */
            namespace: string;
            /** @description What the key is for. */
            role: components["schemas"]["Role"];
            session?: components["schemas"]["Session"] | null;
            /** @description The same of the tenant. */
            tenant: string;
        };
        /** @description A member of a batch. */
        Member: {
            /**
             * Format: date-time
             * @description When its source first had it.
             */
            _first_seen_at: string;
            /** @description Whether its source has it. */
            _is_current: boolean;
            /**
             * Format: date-time
             * @description When its source last had it: of a current member, the last query of its runbook.
             */
            _last_seen_at: string;
            /**
             * Format: date-time
             * @description When it was added, or added again.
             */
            added_at: string;
            /**
             * Format: int64
             * @description The batch.
             */
            batch_id: number;
            /** @description Columns of the source's row. */
            data: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When it failed.
             */
            failed_at?: string | null;
            /**
             * Format: int64
             * @description Id of the member.
             */
            id: number;
            /** @description Value of the primary key column. */
            member_key: string;
            /** @description Which of its removal steps failed, and why. */
            removal_error?: string | null;
            /** @description How far its removal steps have got: `waiting`, `running`, `succeeded` or `failed`. */
            removal_state?: string | null;
            /**
             * Format: date-time
             * @description When it was removed.
             */
            removed_at?: string | null;
            /** @description State of the member. */
            status: components["schemas"]["MemberStatus"];
            /** @description Variables that results have set. */
            worker_data?: {
                [key: string]: unknown;
            };
        };
        /** @description Members of a batch by state. */
        MemberCounts: {
            /**
             * Format: int32
             * @description Members that take part.
             */
            active: number;
            /**
             * Format: int32
             * @description Members that were cancelled.
             */
            cancelled: number;
            /**
             * Format: int32
             * @description Members with a step that failed for good.
             */
            failed: number;
            /**
             * Format: int32
             * @description Members that have left.
             */
            removed: number;
        };
        /** @description A member with its steps in all phases. */
        MemberDetails: components["schemas"]["Member"] & {
            /** @description Its steps, phase by phase. */
            steps: components["schemas"]["Step"][];
            /** @description Steps that cannot be read; absent when there are none. */
            unreadable?: components["schemas"]["Unreadable"][];
        };
        /** @description Members of a batch, in the order in which they were added. */
        MemberList: {
            /** @description The members. */
            members: components["schemas"]["Member"][];
            /** @description Cursor of the next page; absent on the last. */
            next_cursor?: string | null;
            /** @description Stored ones that cannot be read. */
            unreadable?: components["schemas"]["Unreadable"][];
        };
        /**
         * @description State of a member.
         * @enum {string}
         */
        MemberStatus: "active" | "removed" | "failed" | "cancelled";
        /** @description How many messages were taken. Duplicates are taken and dropped. */
        MessagesSent: {
            /** @description Their number. */
            sent: number;
        };
        /**
         * @description What becomes of occurrences while nobody was there to fire them.
         * @enum {string}
         */
        MissedPolicy: "none" | "latest" | "all";
        /** @description How executions of one name ended. */
        NameStats: {
            /**
             * Format: int64
             * @description That were cancelled.
             */
            cancelled: number;
            /**
             * Format: int64
             * @description That completed.
             */
            completed: number;
            /**
             * Format: int64
             * @description That failed.
             */
            failed: number;
            /** @description The function or orchestration. */
            name: string;
            /**
             * Format: int64
             * @description Half of them took at most so long from the begin of the execution to its end, in
             *     milliseconds, at most an eighth above the truth.
             */
            p50_ms?: number | null;
            /**
             * Format: int64
             * @description All but one of a hundred took at most so long.
             */
            p99_ms?: number | null;
        };
        /** @description How many there are of a name. */
        NamedCount: {
            /**
             * Format: int64
             * @description How many.
             */
            count: number;
            /** @description A state, a name or a code. */
            name: string;
        };
        /** @description A node that was heard of in the last hour. */
        Node: {
            /** @description Functions that it runs at once. */
            functions: number;
            /**
             * Format: date-time
             * @description When it was last heard of, by the clock of the store. A node that is up may have been heard of 10 seconds ago.
             */
            last_seen_at: string;
            /** @description Its name. */
            node: string;
            /** @description Turns that it runs at once. */
            orchestrations: number;
            /** @description What it does: `api`, `orchestrator`, `worker`. */
            roles: string[];
            /**
             * Format: date-time
             * @description When it started.
             */
            started_at: string;
            /** @description Whether it works. */
            state: components["schemas"]["NodeState"];
            /**
             * Format: date-time
             * @description When it stopped, if it did so in order.
             */
            stopped_at?: string | null;
            /** @description It takes also work with one of these tags. */
            tags: string[];
            /** @description Its version. */
            version: string;
        };
        /** @description Nodes, by name. */
        NodeList: {
            /** @description The nodes. */
            nodes: components["schemas"]["Node"][];
        };
        /**
         * @description Whether a node works.
         * @enum {string}
         */
        NodeState: "up" | "stopped" | "lost";
        /** @description A notice of a batch: a call of the function that the runbook names under `notify`. */
        Notice: {
            /**
             * Format: date-time
             * @description When it was made.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it was delivered or failed.
             */
            ended_at?: string | null;
            /** @description Why it failed. */
            error_message?: string | null;
            /** @description `approval_wanted`, `phase_failed` or `budget_spent`. */
            event: string;
            /** @description The function. */
            function_name: string;
            /** @description Id of the call's instance. */
            instance: string;
            /**
             * Format: int64
             * @description The phase.
             */
            phase_execution_id: number;
            /** @description Its name. */
            phase_name: string;
            /** @description What became of it. */
            state: components["schemas"]["NoticeState"];
        };
        /**
         * @description What became of a notice.
         * @enum {string}
         */
        NoticeState: "sending" | "delivered" | "failed";
        /**
         * @description What a start does when there is an instance of the id already.
         * @enum {string}
         */
        OnConflict: "reject" | "use_existing" | "replace";
        /**
         * @description What becomes of an action whose function is running on a node that goes down or is cut off.
         * @enum {string}
         */
        OnRestart: "fail" | "resume";
        /** @description An orchestration that a node has, or had within the last day. */
        Orchestration: {
            input_schema?: components["schemas"]["Json"] | null;
            /** @description JSON Schemas of what its signals and mailboxes take, by their names, as far as it declares them. */
            messages?: {
                [key: string]: components["schemas"]["Json"];
            };
            /** @description Its name. */
            name: string;
            /** @description Its versions on the node that published it last, ascending. */
            versions: string[];
        };
        /** @description A page of orchestrations, by name. */
        OrchestrationList: {
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
            /** @description The orchestrations. */
            orchestrations: components["schemas"]["Orchestration"][];
        };
        /**
         * @description The kinds of outcomes.
         * @enum {string}
         */
        OutcomeStatus: "done" | "continue" | "cancel" | "refused";
        /**
         * @description Whether readers see an output.
         * @enum {string}
         */
        OutputVisibility: "PENDING" | "VISIBLE" | "FAILED";
        /**
         * @description What happens to phases that were due before their version was published.
         * @enum {string}
         */
        OverdueBehavior: "rerun" | "ignore";
        /**
         * @description What becomes of an occurrence whose predecessor still runs.
         * @enum {string}
         */
        OverlapPolicy: "allow" | "skip" | "buffer_one" | "cancel_other";
        /** @description Changes of an action. What is left out stays; `null` clears. */
        PatchAction: {
            /** @description What people call it. */
            label?: string | null;
            /**
             * Format: date-time
             * @description When it is due; only while it is pending.
             */
            next_tick_at?: string | null;
            /**
             * Format: int64
             * @description Whether it is done again; `null` for no.
             */
            recurrence_secs?: number | null;
        };
        /** @description Asks for a pause. */
        PausePool: {
            /** @description Why, for people. */
            reason?: string | null;
        };
        /** @description A pause. */
        PauseRecurring: {
            /**
             * @description Namespace, if it is not in the query.
             * @default null
             */
            namespace?: string | null;
            /**
             * @description Why.
             * @default null
             */
            note?: string | null;
            /**
             * Format: date-time
             * @description When it goes on by itself.
             * @default null
             */
            resumes_at?: string | null;
            /**
             * @description Tenant, if it is not in the query.
             * @default null
             */
            tenant?: string | null;
        };
        /** @description Members that the query no longer has, more than `max_removed_percent`. */
        PendingRemoval: {
            /** @description Whether the removal is approved, and made by the next run. */
            approved: boolean;
            /**
             * Format: date-time
             * @description When the last of them was found missing.
             */
            at: string;
            /**
             * Format: int64
             * @description Batches that they are in.
             */
            batches: number;
            /**
             * Format: int64
             * @description How many there are.
             */
            count: number;
            /**
             * Format: int64
             * @description Members that the batches have in all, these included.
             */
            of: number;
            /** @description The first of them. */
            sample: components["schemas"]["HeldMember"][];
            /**
             * Format: int64
             * @description Names these members; a decision is about them only.
             */
            set: number;
        };
        /** @description Something of an instance that happens by itself at a time. */
        PendingTimer: {
            /**
             * Format: date-time
             * @description When.
             */
            at: string;
            /**
             * Format: int64
             * @description The event that began it.
             */
            event?: number | null;
            /** @description The function that it calls. */
            function?: string | null;
            /** @description The instance. */
            instance: string;
            /** @description `timer`, `activity` (its next attempt) or `start`. */
            kind: components["schemas"]["WaitKind"];
            /** @description The activity that is tried again. */
            name?: string | null;
            /** @description Its orchestration. */
            orchestration?: string | null;
            /**
             * Format: date-time
             * @description Since when it waits.
             */
            since: string;
        };
        /**
         * @description What groups of operations need.
         * @enum {string}
         */
        Permission: "read" | "operate" | "work" | "messages" | "system" | "admin";
        /** @description A phase of a batch. */
        Phase: {
            /**
             * Format: date-time
             * @description When an approval was requested.
             */
            approval_requested_at?: string | null;
            /**
             * Format: date-time
             * @description When it was approved.
             */
            approved_at?: string | null;
            /** @description Id of the API key with which it was approved. */
            approved_by?: string | null;
            /**
             * Format: int64
             * @description The batch.
             */
            batch_id: number;
            /**
             * Format: date-time
             * @description When it ended.
             */
            completed_at?: string | null;
            /**
             * Format: date-time
             * @description When its steps began.
             */
            dispatched_at?: string | null;
            /**
             * Format: date-time
             * @description When it becomes due; absent in a batch that is advanced by hand until it is advanced.
             */
            due_at?: string | null;
            /**
             * Format: int64
             * @description Id of the phase execution.
             */
            id: number;
            /**
             * Format: int32
             * @description Members with a failed step.
             */
            members_failed: number;
            /**
             * Format: int32
             * @description Members that have passed its last step.
             */
            members_succeeded: number;
            /**
             * Format: int64
             * @description Minutes before `batch_start_time`.
             */
            offset_minutes: number;
            /** @description Name of the phase. */
            phase_name: string;
            /** @description Why it failed or was left out. */
            reason?: string | null;
            /**
             * Format: int32
             * @description Version of the runbook that it is from.
             */
            runbook_version: number;
            /** @description State of the phase. */
            status: components["schemas"]["PhaseStatus"];
            /** @description Steps of all members by state. */
            step_counts: {
                [key: string]: number;
            };
            /**
             * Format: int32
             * @description Number of its steps.
             */
            steps: number;
            /**
             * Format: date-time
             * @description When its error budget was spent.
             */
            stopped_at?: string | null;
        };
        /** @description What becomes of a phase of a version in batches that move to it. */
        PhaseMoves: {
            /**
             * Format: int64
             * @description Batches in which it was approved and has to be approved again.
             */
            approval_again: number;
            /**
             * Format: int64
             * @description Of those batches, the ones in which it is in progress: that ends first.
             */
            in_progress: number;
            /**
             * Format: int64
             * @description Members that take part in those batches.
             */
            members: number;
            /** @description Name of the phase. */
            phase_name: string;
            /**
             * Format: int64
             * @description Batches that have begun it in an older version and run it again.
             */
            runs_again: number;
            /**
             * Format: int64
             * @description Batches that skip it, because it is overdue.
             */
            skipped: number;
        };
        /**
         * @description State of a phase.
         * @enum {string}
         */
        PhaseStatus: "pending" | "dispatched" | "completed" | "failed" | "skipped" | "superseded";
        /** @description A pool of workers. */
        Pool: {
            /**
             * Format: double
             * @description At most so many calls are handed out per second; absent without a limit.
             */
            calls_per_second?: number | null;
            /** @description Functions that may be called through it; `Set-*` is all that begin with `Set-`. */
            functions: string[];
            /**
             * Format: int64
             * @description Calls of it that they have leased and not answered.
             */
            in_flight: number;
            /**
             * Format: date-time
             * @description When one of them last fetched or answered; absent when none was heard of lately.
             */
            last_seen_at?: string | null;
            /**
             * @description Its name.
             * @example cloud-01
             */
            name: string;
            /** @description Where it is declared. */
            origin: components["schemas"]["PoolOrigin"];
            paused?: components["schemas"]["PoolPause"] | null;
            /**
             * Format: date-time
             * @description Until when it rests because its workers were throttled.
             */
            throttled_until?: string | null;
            /** @description Longest time of one attempt of calls that do not say; absent without one. */
            timeout?: string | null;
            /** @description How calls reach its workers. */
            transport: components["schemas"]["PoolTransport"];
            /** @description Why `paused` and `throttled_until` are not known; absent when they are. */
            unreadable?: string | null;
            /**
             * Format: int64
             * @description Workers that fetched for it in the last two minutes, or hold calls of it, among the first 10,000 of the tenant by name. A pool
             *     with none has nobody to run its calls.
             */
            worker_count: number;
        };
        /** @description A pool with its workers. */
        PoolDetails: {
            /** @description Give this as `cursor` for the next page of workers; absent on the last one. */
            next_cursor?: string | null;
            /** @description The pool. */
            pool: components["schemas"]["Pool"];
            /** @description Why workers are missing that cannot be read; absent when there are none. */
            unreadable?: components["schemas"]["Unreadable"][];
            /** @description A page of its workers that were heard of in the last two minutes, by name. `worker_count` is how many there are. */
            workers: components["schemas"]["Worker"][];
        };
        /** @description A page of pools, by name. */
        PoolList: {
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
            /** @description The pools. */
            pools: components["schemas"]["Pool"][];
            /** @description Rows of this page that cannot be read; absent when there are none. */
            unreadable?: components["schemas"]["Unreadable"][];
        };
        /**
         * @description Where a pool is declared.
         * @enum {string}
         */
        PoolOrigin: "settings" | "announced";
        /** @description Since when and why a pool is paused. */
        PoolPause: {
            /**
             * Format: date-time
             * @description Since when.
             */
            at: string;
            /** @description Why. */
            reason?: string | null;
        };
        /**
         * @description How the calls of a pool reach what runs them.
         * @enum {string}
         */
        PoolTransport: "queue" | "local" | "bus";
        /** @description A batch of a preview. */
        PreviewGroup: {
            /**
             * Format: date-time
             * @description Its start.
             */
            batch_start_time: string;
            /**
             * Format: int64
             * @description Rows that belong to it.
             */
            rows: number;
        };
        /** @description Which query to preview. */
        PreviewRunbook: {
            /**
             * @description A YAML document that is not published; the active version without it.
             * @default null
             */
            yaml_content?: string | null;
        };
        /** @description A row of a preview. */
        PreviewSample: {
            /**
             * Format: date-time
             * @description Start of its batch; absent if its batch time cannot be read.
             */
            batch_start_time?: string | null;
            /** @description Its columns. */
            data: {
                [key: string]: unknown;
            };
            /** @description Key of the member. */
            member_key: string;
        };
        /** @description A time at which something will run. */
        PreviewTime: {
            /** @description As the clocks of the zone show it. */
            local: string;
            /** @description What daylight saving or the calendar has to do with it, for people. */
            note?: string | null;
            /**
             * Format: date-time
             * @description In UTC.
             */
            time: string;
        };
        /** @description What went wrong, and what to do about it. */
        Problem: {
            /**
             * @description Stable name of the problem; programs decide by it.
             * @example not-found
             */
            code: string;
            /** @description What is wrong this time, and what to do. */
            detail: string;
            /** @description A short text without names or ids, where a route promises one: `recurring action not found`. */
            error?: string | null;
            /** @description Fields of the request that are wrong. */
            errors?: components["schemas"]["FieldProblem"][];
            /** @description Id of the request, as in the answer's `x-request-id` and in the server's log. */
            request_id?: string | null;
            /**
             * Format: int32
             * @description The HTTP status.
             */
            status: number;
            /** @description A few words that are the same for every problem of this code. */
            title: string;
            /**
             * @description Address of the page about this code.
             * @example https://segno.dev/errors/not-found
             */
            type: string;
        };
        /** @description A part of a count. */
        ProblemItem: {
            /**
             * Format: int64
             * @description How many.
             */
            count: number;
            /** @description What it is called. */
            name: string;
        };
        /**
         * @description What may be wrong. More kinds may be added.
         * @enum {string}
         */
        ProblemKind: "failed_recently" | "stuck" | "paused" | "overdue_schedules" | "overdue_actions" | "functions_without_worker" | "dead_letters" | "hooks_refused" | "batches_waiting" | "removals_waiting" | "runs_failed" | "sensors_failing" | "store" | "ledger" | "clock" | "nodes";
        /** @description Where problems are listed. */
        ProblemLink: {
            /** @description What it is filtered by, as the text form of the filter has it. */
            filter: {
                [key: string]: string;
            };
            /** @description The list, as its route is called: `instances`, `recurring`, `dead_letters`. */
            page: string;
        };
        /** @description What is wrong now, and what was looked at. */
        ProblemReport: {
            /**
             * Format: date-time
             * @description When this was found out. An answer is given again for a second.
             */
            at: string;
            /** @description The kinds of problems that were looked for. */
            checked: components["schemas"]["ProblemKind"][];
            /** @description What is wrong, errors first. */
            problems: components["schemas"]["KnownProblem"][];
            /** @description Kinds that could not be looked for, or not to their end. */
            unknown: components["schemas"]["UnknownProblem"][];
        };
        /** @description A DAG that is to be published. */
        PublishDag: {
            /**
             * @description The document, YAML or JSON.
             * @example name: daily-sales
             *     tasks: …
             */
            document: string;
        };
        /** @description What publishing a version would do. Nothing was changed. */
        PublishPlan: {
            /** @description Whether it would be a new version; publishing the active one again changes nothing. */
            is_new: boolean;
            /** @description What it would do to open batches of the runbook. */
            moves: components["schemas"]["VersionMoves"];
            /** @description Name of the runbook. */
            name: string;
            /**
             * Format: int32
             * @description The version that it would have.
             */
            version: number;
            /** @description What its author probably did not intend. */
            warnings?: string[];
        };
        /** @description A runbook that is to be published. */
        PublishRunbook: {
            /** @description What happens to phases of running batches that were due before this version was published. */
            overdue_behavior?: components["schemas"]["OverdueBehavior"];
            /** @description Whether init steps run again in running batches that move to this version. */
            rerun_init?: boolean;
            /**
             * @description The YAML document.
             * @example name: wave-mailbox-move
             *     …
             */
            yaml_content: string;
        };
        /** @description Members to add to a batch, or to update. */
        PutMembers: {
            /** @description Members as objects: names are columns. */
            members?: {
                [key: string]: unknown;
            }[];
            /** @description Members as CSV text whose first line has the names of the columns. */
            members_csv?: string | null;
        };
        /** @description Why a run failed. */
        QueryError: {
            /**
             * Format: date-time
             * @description When.
             */
            at: string;
            /**
             * @description The stable code.
             * @example source-failed
             */
            code: string;
            /** @description What went wrong. */
            message: string;
        };
        /** @description What a run found and changed. */
        QueryResult: {
            /**
             * Format: int64
             * @description Members that were added, or have returned.
             */
            added: number;
            /**
             * Format: int64
             * @description Batches that they belong to.
             */
            batches: number;
            /**
             * Format: int64
             * @description Members whose data has changed.
             */
            changed: number;
            /**
             * Format: int64
             * @description Batches that were created.
             */
            created: number;
            /**
             * Format: int64
             * @description Members that were removed.
             */
            removed: number;
            /**
             * Format: int64
             * @description Rows of the query.
             */
            rows: number;
            /**
             * Format: int64
             * @description Rows without a batch: their batch time cannot be read, or their batch has ended.
             */
            skipped: number;
            /**
             * Format: int64
             * @description Those of them whose batch has ended.
             */
            skipped_ended?: number;
        };
        /** @description Lengths of the queues of the whole store. */
        QueueStats: {
            /**
             * Format: date-time
             * @description The minute in which they were looked at.
             */
            at: string;
            /**
             * Format: int64
             * @description What is not due yet, of both queues.
             */
            delayed: number;
            /**
             * Format: int64
             * @description What is worked on.
             */
            locked: number;
            /**
             * Format: int64
             * @description Turns that wait for a node.
             */
            orchestrator: number;
            /**
             * Format: int64
             * @description Activities that wait for a worker.
             */
            worker: number;
        };
        /** @description Lengths of the queues at this moment. */
        Queues: {
            /**
             * Format: int64
             * @description What is not due yet, of both queues.
             */
            delayed: number;
            /**
             * Format: int64
             * @description What somebody works on.
             */
            locked: number;
            /**
             * Format: int64
             * @description Messages for instances that nobody has taken yet.
             */
            orchestrator: number;
            /**
             * Format: int64
             * @description Messages for instances that are not due yet.
             */
            orchestrator_delayed?: number;
            /**
             * Format: int64
             * @description Activities that nobody has taken yet.
             */
            worker: number;
            /**
             * Format: int64
             * @description Activities that are not due yet.
             */
            worker_delayed?: number;
        };
        /** @description Why something is done to an instance. */
        Reason: {
            /** @description Kept in the history. */
            reason?: string | null;
        };
        /** @description What a receiver wants. */
        ReceiveMessages: {
            /** @description At most this many, 1 to 100; 1 without it. */
            max_messages?: number | null;
            /**
             * Format: int64
             * @description How long to wait for the first, up to 60,000; not at all without it.
             */
            wait_ms?: number | null;
        };
        /** @description The answer to a sender: what it sent is on the disk. */
        Received: {
            /** @description Id of the payload; of the first one if it has come before. */
            id: string;
            /** @description What became of it: `routed`, `stored`, `filtered`, `deduplicated` or `dispatch_error`. */
            outcome: string;
        };
        /** @description Messages that the receiver has locked. */
        ReceivedMessages: {
            /** @description The messages, oldest first. */
            messages: components["schemas"]["LockedMessage"][];
        };
        /** @description What became of an occurrence, in short. */
        RecentOccurrence: {
            /** @description `fired`, `skipped`, `buffered`, `refused` or `disabled`. */
            decision: string;
            /** @description The instance of its call. */
            instance?: string | null;
            /** @description `completed`, `failed` or `cancelled`; absent while its call runs. */
            outcome?: string | null;
            /**
             * Format: date-time
             * @description The scheduled time.
             */
            time: string;
        };
        /** @description A recurring action. */
        RecurringAction: {
            /** @description The action that is called. */
            action_template: components["schemas"]["RecurringTemplate"];
            /**
             * Format: date-time
             * @description Where intervals are counted from.
             */
            anchor?: string | null;
            /**
             * Format: date-time
             * @description Its one moment, if it has one.
             */
            at?: string | null;
            /**
             * Format: int32
             * @description With `missed: all`: how many in a row.
             */
            catch_up_limit: number;
            /** @description With `missed: all`: how far back. */
            catch_up_window: string;
            /**
             * Format: int32
             * @description How many of its calls have failed since one succeeded.
             */
            consecutive_failures: number;
            /**
             * Format: date-time
             * @description When it was made.
             */
            created_at: string;
            /** @description Its cron expression, if it has one. */
            cron_expr?: string | null;
            /** @description What the expression means where clocks are put forward or back. */
            daylight: components["schemas"]["Daylight"];
            /** @description For how long a dedup key suppresses further calls. */
            dedup_window: string;
            /** @description What it is for. */
            description?: string | null;
            /** @description Why it does not fire any more, if nobody paused it. */
            disabled_reason?: string | null;
            /** @description Whether it fires. */
            enabled: boolean;
            /**
             * Format: date-time
             * @description Nothing happens after this time.
             */
            ends_at?: string | null;
            /** @description Its interval, if it has one. */
            every?: string | null;
            /** @description Days on which nothing happens. */
            exclude?: string[];
            /**
             * Format: int64
             * @description How often it has fired.
             */
            execution_count: number;
            /**
             * Format: int64
             * @description How many of its calls have failed.
             */
            failure_count: number;
            /** @description Its id. */
            id: string;
            /** @description Each occurrence is fired up to this much later. */
            jitter?: string | null;
            /** @description For finding and sorting. */
            labels: {
                [key: string]: string;
            };
            /** @description Why the last failure was one. */
            last_error?: string | null;
            /**
             * Format: date-time
             * @description When it last fired.
             */
            last_executed_at?: string | null;
            /** @description The instance of its last call. */
            last_execution_id?: string | null;
            /**
             * Format: int64
             * @description After so many executions it is disabled.
             */
            max_executions?: number | null;
            /** @description When nobody was there. */
            missed: components["schemas"]["MissedPolicy"];
            /** @description What people call it. */
            name?: string | null;
            /** @description Namespace. */
            namespace: string;
            /**
             * Format: date-time
             * @description The next scheduled time.
             */
            next_execution_at?: string | null;
            /** @description When the run before has not ended. */
            overlap_policy: components["schemas"]["OverlapPolicy"];
            /**
             * Format: int32
             * @description After so many failures in a row it is paused.
             */
            pause_after_failures?: number | null;
            /** @description Why somebody paused it. */
            pause_note?: string | null;
            /**
             * Format: date-time
             * @description Since when it is paused.
             */
            paused_at?: string | null;
            /**
             * Format: date-time
             * @description When it goes on by itself.
             */
            resumes_at?: string | null;
            /** @description The schedule in plain English. */
            schedule: string;
            /**
             * Format: date-time
             * @description Nothing happens before this time.
             */
            starts_at?: string | null;
            /** @description `active`, `paused` or `completed`. */
            status: string;
            /** @description Tenant. */
            tenant: string;
            /** @description Its zone. */
            timezone: string;
            /**
             * Format: date-time
             * @description When it was last changed by somebody.
             */
            updated_at: string;
            /** @description How the schedule reads what other implementations of cron read differently, for people. */
            warnings?: string[];
        };
        /** @description The answer to a creation. */
        RecurringCreated: {
            /** @description Its cron expression, if it has one. */
            cron_expr?: string | null;
            /** @description Whether it fires. */
            enabled: boolean;
            /**
             * Format: date-time
             * @description When it fires first; none if it is paused.
             */
            next_execution?: string | null;
            /** @description Its id. */
            recurring_id: string;
            /** @description The schedule in plain English. */
            schedule: string;
            /** @description Its zone. */
            timezone: string;
            /** @description How the schedule reads what other implementations of cron read differently, for people. */
            warnings?: string[];
        };
        /** @description What became of an occurrence, or of a stretch of them. */
        RecurringEntry: {
            /**
             * Format: int64
             * @description Of a stretch: how many occurrences it has; of very many, a lower bound.
             */
            count?: number | null;
            /**
             * Format: date-time
             * @description When it was decided.
             */
            decided_at: string;
            /** @description `fired`, `skipped`, `buffered`, `refused` or `disabled`. */
            decision: string;
            /** @description More about it, for people. */
            detail?: string | null;
            /**
             * Format: date-time
             * @description When its call ended.
             */
            ended_at?: string | null;
            /** @description The instance of its call. */
            instance?: string | null;
            /** @description Whether a caller ran it, out of schedule; its time is that of the request then. */
            manual?: boolean;
            /** @description What daylight saving has to do with it, for people. */
            note?: string | null;
            /** @description `completed`, `failed`, or `cancelled` for the next occurrence; absent while it runs. */
            outcome?: string | null;
            /** @description Why it was skipped: `overlap`, `paused`, `calendar`, `dedup`, `missed` or `coalesced`. */
            reason?: string | null;
            /**
             * Format: date-time
             * @description The scheduled time; of a stretch, the first.
             */
            time: string;
            /**
             * Format: date-time
             * @description Of a stretch: the first scheduled time after it.
             */
            until?: string | null;
        };
        /** @description Why something did or did not run. */
        RecurringExplanation: {
            /**
             * Format: date-time
             * @description When the action was created, if that was later.
             */
            created_at?: string | null;
            entry?: components["schemas"]["RecurringEntry"] | null;
            /**
             * Format: date-time
             * @description The next occurrence after it that will run; absent when there is none, or the action is paused without an end.
             */
            next?: string | null;
            /**
             * Format: date-time
             * @description Since when the action is paused, if that is why.
             */
            paused_at?: string | null;
            /**
             * Format: date-time
             * @description When the paused action goes on by itself.
             */
            resumes_at?: string | null;
            /** @description Whether it ran, or will run. */
            runs: boolean;
            /** @description Why, for people. Times are in fields of their own. */
            text: string;
            /**
             * Format: date-time
             * @description The time that was asked for.
             */
            time: string;
        };
        /**
         * @description What can be said of a recurring action. To create one, give a schedule (one of `cron_expr`, `every` and `at`) and a
         *     function (`provider` with `action_type` and `payload`, or `function` with `input`). To change one, give what changes;
         *     `null` clears a field.
         *
         *     Durations are texts such as `30s`, `10m` or `1h30m`.
         */
        RecurringFields: {
            /**
             * @description What sort of action it is.
             * @default null
             * @example send_digest
             */
            action_type?: string | null;
            /**
             * Format: date-time
             * @description Where intervals are counted from.
             * @default null
             */
            anchor?: string | null;
            /**
             * Format: date-time
             * @description One moment.
             * @default null
             */
            at?: string | null;
            /**
             * Format: int32
             * @description With `missed: all`: how many in a row; 100 without it.
             * @default null
             */
            catch_up_limit?: number | null;
            /**
             * @description With `missed: all`: how far back; `1h` without it.
             * @default null
             */
            catch_up_window?: string | null;
            /**
             * @description A cron expression with 5, 6 or 7 fields.
             * @default null
             * @example 0 9 * * MON-FRI
             */
            cron_expr?: string | null;
            /** @default null */
            daylight?: components["schemas"]["Daylight"] | null;
            /**
             * @description A text that stands for the call; `{{recurring_id}}` and `{{execution_time}}` are expanded.
             * @default null
             */
            dedup_key?: string | null;
            /**
             * @description For how long a dedup key suppresses further calls; `1d` without it.
             * @default null
             */
            dedup_window?: string | null;
            /**
             * @description What it is for.
             * @default null
             */
            description?: string | null;
            /**
             * @description Whether it fires.
             * @default null
             */
            enabled?: boolean | null;
            /**
             * Format: date-time
             * @description Nothing happens after this time.
             * @default null
             */
            ends_at?: string | null;
            /**
             * @description An interval.
             * @default null
             */
            every?: string | null;
            /**
             * @description Days of the zone on which nothing happens: `2026-12-25`, `12-25` (every year), `SAT`, and ranges such as
             *     `2026-12-24..2027-01-01`.
             * @default null
             * @example [
             *       "SAT..SUN",
             *       "12-25"
             *     ]
             */
            exclude?: string[] | null;
            /**
             * @description The function, which gets `input` as it is; in place of `provider`.
             * @default null
             */
            function?: string | null;
            /** @default null */
            input?: components["schemas"]["Json"] | null;
            /**
             * @description Each occurrence is fired up to this much later.
             * @default null
             */
            jitter?: string | null;
            /**
             * @description For finding and sorting.
             * @default null
             */
            labels?: {
                [key: string]: string;
            } | null;
            /**
             * Format: int64
             * @description After so many executions it is disabled.
             * @default null
             */
            max_executions?: number | null;
            /**
             * @description Labels that the function gets with each call.
             * @default null
             */
            metadata?: {
                [key: string]: string;
            } | null;
            /** @default null */
            missed?: components["schemas"]["MissedPolicy"] | null;
            /**
             * @description What people call it.
             * @default null
             */
            name?: string | null;
            /**
             * @description Namespace, if it is not in the query.
             * @default null
             */
            namespace?: string | null;
            /**
             * @description The orchestration that is started with `input` as it is; in place of `provider` or `function`.
             * @default null
             */
            orchestration?: string | null;
            /** @default null */
            overlap_policy?: components["schemas"]["OverlapPolicy"] | null;
            /**
             * Format: int32
             * @description After so many failures in a row it is paused.
             * @default null
             */
            pause_after_failures?: number | null;
            /** @default null */
            payload?: components["schemas"]["Json"] | null;
            /**
             * @description The function, which gets an object with `action_type`, `payload`, `metadata` and `dedup_key`.
             * @default null
             * @example echo
             */
            provider?: string | null;
            /**
             * Format: date-time
             * @description Nothing happens before this time.
             * @default null
             */
            starts_at?: string | null;
            /**
             * @description Tenant, if it is not in the query.
             * @default null
             */
            tenant?: string | null;
            /**
             * @description The zone whose clocks the expression means; `UTC` without it.
             * @default null
             * @example Europe/Berlin
             */
            timezone?: string | null;
        };
        /** @description What became of occurrences, newest first. */
        RecurringHistory: {
            /** @description Newest first. */
            entries: components["schemas"]["RecurringEntry"][];
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
            /** @description Entries that cannot be read, by their times. */
            unreadable?: components["schemas"]["Unreadable"][];
        };
        /** @description A page of recurring actions. */
        RecurringList: {
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
            /** @description Newest first. */
            recurring_actions: components["schemas"]["RecurringSummary"][];
            /** @description Rows of this page that cannot be read; absent when there are none. */
            unreadable?: components["schemas"]["Unreadable"][];
        };
        /** @description The next times of a schedule. */
        RecurringPreview: {
            /**
             * Format: date-time
             * @description Where the search ended because it took too long, although more times were wanted; give this as `from` to go on.
             */
            next_after?: string | null;
            /** @description The schedule in plain English. */
            schedule: string;
            /** @description The times. */
            times: components["schemas"]["PreviewTime"][];
            /** @description How the schedule reads what other implementations of cron read differently, for people. */
            warnings?: string[];
            /** @description Version of the zone database. */
            zones: string;
        };
        /** @description What became of a run out of schedule. */
        RecurringRun: {
            /** @description Whether this request made the run; false when one with its key was there. */
            created: boolean;
            /** @description `fired`, `skipped` when its dedup key had been seen, or `refused` when its call could not be made. */
            decision: string;
            /** @description Why it was not fired. */
            detail?: string | null;
            /** @description Id of the recurring action. */
            id: string;
            /** @description The instance of its call. */
            instance?: string | null;
            /**
             * Format: date-time
             * @description The time of the run, by which its history has it.
             */
            time: string;
        };
        /** @description The answer to pausing and resuming. */
        RecurringState: {
            /** @description Whether it fires. */
            enabled: boolean;
            /** @description Its id. */
            id: string;
            /**
             * Format: date-time
             * @description The next scheduled time.
             */
            next_execution_at?: string | null;
        };
        /** @description A recurring action in a listing. */
        RecurringSummary: {
            /** @description What sort of action it is. */
            action_type: string;
            /**
             * Format: date-time
             * @description When it was made.
             */
            created_at: string;
            /** @description Its cron expression, if it has one. */
            cron_expr?: string | null;
            /** @description What it is for. */
            description?: string | null;
            /** @description Whether it fires. */
            enabled: boolean;
            /**
             * Format: int64
             * @description How often it has fired.
             */
            execution_count: number;
            /** @description Its id. */
            id: string;
            /** @description For finding and sorting. */
            labels: {
                [key: string]: string;
            };
            /**
             * Format: date-time
             * @description When it last fired.
             */
            last_executed_at?: string | null;
            /** @description What people call it. */
            name?: string | null;
            /**
             * Format: date-time
             * @description The next scheduled time.
             */
            next_execution_at?: string | null;
            /** @description The orchestration that is started, in place of a function. */
            orchestration?: string | null;
            /** @description The function; empty if an orchestration is started. */
            provider: string;
            /** @description What became of the last occurrences, newest first; only if the request wants them. */
            recent?: components["schemas"]["RecentOccurrence"][];
            /** @description The schedule in plain English. */
            schedule: string;
            /** @description `active`, `paused` or `completed`. */
            status: string;
            /** @description Its zone. */
            timezone: string;
        };
        /** @description The action that is called. */
        RecurringTemplate: {
            /** @description What sort of action it is; empty if the function gets the payload as it is. */
            action_type: string;
            /** @description A text that stands for the call. */
            dedup_key?: string | null;
            /** @description Labels that the function gets with each call. */
            metadata: {
                [key: string]: string;
            };
            /** @description The orchestration that is started, in place of a function. */
            orchestration?: string | null;
            /** @description The payload. */
            payload: components["schemas"]["Json"];
            /** @description The function; empty if an orchestration is started. */
            provider: string;
        };
        /** @description Gives a call back. */
        ReleaseWork: {
            /**
             * Format: int64
             * @description Nobody gets it for so many milliseconds.
             */
            delay_ms?: number | null;
            /** @description The lease. */
            lease: string;
        };
        /** @description A decision about members whose removal waited for approval. */
        RemovalDecided: {
            /** @description Whether the removal was approved; otherwise the members stay. */
            approved: boolean;
            /**
             * Format: date-time
             * @description When.
             */
            at: string;
            /** @description Id of the API key that decided; absent on a server without keys. */
            by?: string | null;
            /**
             * Format: int64
             * @description Members that it was about.
             */
            count: number;
            /**
             * Format: int64
             * @description `set` of the removal.
             */
            set: number;
        };
        /** @description Members to remove from a batch. */
        RemoveMembers: {
            /** @description Their keys; letter case does not matter. */
            keys: string[];
        };
        /** @description A lock to extend. */
        RenewLock: {
            /** @description The lock. */
            lock: string;
        };
        /** @description A payload that is called again. */
        Replayed: {
            /** @description The new action. */
            action: string;
            /** @description The payload. */
            id: string;
        };
        /**
         * @description What became of a request.
         * @enum {string}
         */
        RequestState: "waiting" | "applied" | "refused" | "ignored";
        /**
         * @description Which tasks a rerun has.
         * @enum {string}
         */
        RerunFrom: "failure" | "subset";
        /** @description Repeats a run that has ended, as a new run. */
        RerunRun: {
            /** @description Whether everything downstream of these runs as well; only with `subset`. */
            downstream?: boolean;
            /** @description Which tasks. */
            from?: components["schemas"]["RerunFrom"];
            /** @description Keys of tasks; only with `subset`. */
            tasks?: string[];
        };
        /** @description A new start with the input of the last one, or with another. */
        Restart: {
            /** @description Also when the instance has not ended: its execution is cancelled in the same step. */
            force?: boolean;
            input?: components["schemas"]["Json"] | null;
            /** @description Start it under this id and leave the old one as it is; without it the next execution of the instance begins. */
            new_id?: string | null;
            /** @description Why; kept in the audit log. */
            reason?: string | null;
        };
        /** @description What became of a letter that was resubmitted. */
        Resubmitted: {
            /**
             * Format: int64
             * @description The execution that begins; absent for a message.
             */
            execution?: number | null;
            /** @description Id of the letter, which is gone. */
            id: string;
            /** @description The instance. */
            instance: string;
        };
        /** @description What was retried at once. */
        Retried: {
            /**
             * Format: int64
             * @description Activities that were delayed and may run now.
             */
            activities: number;
            /** @description The instance. */
            id: string;
        };
        /**
         * @description From where a failed member is tried again.
         * @enum {string}
         */
        RetryFrom: "step" | "phase";
        /** @description When to try again. */
        RetryPolicy: {
            /**
             * Format: int32
             * @description Attempts in all, the first included.
             */
            attempts: number;
            /**
             * Format: double
             * @description What each further pause is longer by; 2 without it.
             */
            factor?: number | null;
            /**
             * @description The first pause; `1s` without it.
             * @example 1s
             */
            initial_delay?: string | null;
            /**
             * @description The longest pause; `5m` without it.
             * @example 5m
             */
            max_delay?: string | null;
        };
        /**
         * @description What the holder of a key may do.
         * @enum {string}
         */
        Role: "admin" | "operator" | "viewer" | "worker";
        /** @description The new state of a row of a batch. */
        RowChange: {
            /** @description What keeps it from going on: `paused`, `approval` or `budget`. */
            held?: string | null;
            /**
             * Format: int64
             * @description Its id.
             */
            id: number;
            /** @description Which kind of row. */
            kind: components["schemas"]["RowKind"];
            /**
             * Format: int64
             * @description The member of a step.
             */
            member?: number | null;
            /**
             * Format: int64
             * @description The phase of a step.
             */
            phase?: number | null;
            /** @description Its state, as in the row: `succeeded`, `polling`. */
            status: string;
        };
        /**
         * @description Which row of a batch a change is about.
         * @enum {string}
         */
        RowKind: "batch" | "phase" | "init" | "member" | "step" | "rollback" | "init_rollback" | "removal";
        /** @description A run of a DAG. */
        Run: {
            /** @description Whether its cancellation was requested. */
            cancel_requested?: boolean;
            /**
             * Format: date-time
             * @description When its last task ended.
             */
            completed_at?: string | null;
            /** @description Name of the DAG. */
            dag: string;
            /**
             * Format: int32
             * @description Version of the DAG that it follows.
             */
            dag_version?: number | null;
            /** @description Id of the run. */
            id: string;
            /** @description Whether no further attempts are dispatched. */
            is_paused?: boolean;
            /** @description Labels. */
            labels?: {
                [key: string]: string;
            };
            /** @description The run that it repeats. */
            parent_run?: string | null;
            /** @description Why it was cancelled, or why its plan was refused. */
            reason?: string | null;
            /** @description The key under which it was requested once. */
            run_key?: string | null;
            /** @description State of the run. */
            status: components["schemas"]["RunStatus"];
            /**
             * Format: int32
             * @description Tasks that were cancelled.
             */
            tasks_cancelled: number;
            /**
             * Format: int32
             * @description Tasks that have ended.
             */
            tasks_completed: number;
            /**
             * Format: int32
             * @description Tasks that have failed.
             */
            tasks_failed: number;
            /**
             * Format: int32
             * @description Tasks that were skipped.
             */
            tasks_skipped: number;
            /**
             * Format: int32
             * @description Tasks that have succeeded.
             */
            tasks_succeeded: number;
            /**
             * Format: int32
             * @description Its tasks.
             */
            tasks_total: number;
            trigger?: components["schemas"]["RunTrigger"] | null;
            /**
             * Format: date-time
             * @description When it was triggered.
             */
            triggered_at: string;
        };
        /** @description What was published of a run of a DAG: the new states of its tasks. */
        RunChange: {
            /**
             * Format: date-time
             * @description When a node noticed that it was published.
             */
            at: string;
            /** @description Name of its DAG. */
            dag?: string | null;
            /** @description Whether it is paused. */
            is_paused?: boolean;
            /** @description How many further tasks have changed, by their new state, as in `{"ready":950}`. */
            left_out?: {
                [key: string]: number;
            };
            /** @description Id of the run. */
            run: string;
            /** @description State of the run. */
            status: components["schemas"]["RunStatus"];
            /** @description Tasks that have changed, by key. At most 50; the others are counted in `left_out`. */
            tasks?: components["schemas"]["TaskChange"][];
        };
        /** @description A change of a run that is stored. */
        RunChanged: {
            /** @description Id of the run. */
            id: string;
            /** @description Whether reads show the change already. It is applied in any case. */
            is_visible: boolean;
        };
        /** @description A run with its first tasks, and why it waits. */
        RunDetails: components["schemas"]["Run"] & {
            params?: components["schemas"]["Json"] | null;
            /** @description Its partition, if all its tasks have the same. */
            partition?: string | null;
            /** @description Its first 1,000 tasks, upstream before downstream. `GET /v1/runs/{id}/tasks` lists all of them. */
            tasks: components["schemas"]["RunTask"][];
            /** @description Why it waits, and when it wakes. */
            waits: components["schemas"]["RunWait"];
        };
        /** @description Runs, newest first. */
        RunList: {
            /** @description Cursor of the next page; absent on the last. */
            next_cursor?: string | null;
            /** @description The runs. */
            runs: components["schemas"]["Run"][];
            /** @description Stored ones that cannot be read. */
            unreadable?: components["schemas"]["Unreadable"][];
        };
        /** @description A run out of schedule. */
        RunRecurring: {
            /** @description Names the run: a second one with the same key changes nothing and gets the same answer. */
            key?: string | null;
        };
        /**
         * @description State of a run.
         * @enum {string}
         */
        RunStatus: "triggered" | "running" | "succeeded" | "failed" | "cancelled";
        /** @description A task of a run. */
        RunTask: {
            /** @description The asset that it makes. */
            asset?: string | null;
            /**
             * Format: int32
             * @description The attempt that is under way or comes next; 0 before the first.
             */
            attempt: number;
            /**
             * Format: date-time
             * @description When the task ended.
             */
            completed_at?: string | null;
            /** @description Keys of the tasks that come first. */
            depends_on?: string[];
            /**
             * Format: date-time
             * @description When the attempt was dispatched.
             */
            dispatched_at?: string | null;
            /** @description The category of that error. */
            error_category?: string | null;
            /** @description Why the last attempt failed, or why the task was left out. */
            error_message?: string | null;
            /** @description The task that added it for an item of a list. */
            expanded_from?: string | null;
            /** @description The function that it calls. */
            function?: string | null;
            /** @description Instance of the attempt; its history, logs and workers are found under it. */
            instance?: string | null;
            /** @description Key of the task, unique within its run. */
            key: string;
            /** @description Id of the API key with which its state was set by hand. */
            marked_by?: string | null;
            /**
             * Format: int32
             * @description Attempts before it fails.
             */
            max_attempts: number;
            /** @description The orchestration that it starts. */
            orchestration?: string | null;
            /** @description The partition of the asset. */
            partition?: string | null;
            /** @description The concurrency pool that it takes a slot of. */
            pool?: string | null;
            /**
             * Format: int32
             * @description How far the attempt is, in percent, as its worker reports it.
             */
            progress_pct?: number | null;
            /**
             * Format: date-time
             * @description When it became ready.
             */
            ready_at?: string | null;
            /**
             * Format: date-time
             * @description The earliest time of the next attempt.
             */
            retry_not_before?: string | null;
            /**
             * Format: date-time
             * @description When the attempt started. An attempt that ended before a node noticed its start counts from its dispatch.
             */
            started_at?: string | null;
            /** @description State of the task. */
            status: components["schemas"]["TaskStatus"];
            /** @description Which ends of upstream tasks it needs. */
            trigger_rule: string;
            waits?: components["schemas"]["RunWait"] | null;
            /** @description The worker that runs the attempt. */
            worker?: string | null;
        };
        /** @description A task with its input and output. */
        RunTaskDetails: components["schemas"]["RunTask"] & {
            input?: components["schemas"]["Json"] | null;
            output?: components["schemas"]["Json"] | null;
            /** @description Instance that returned it, if it is larger; `GET /v1/runs/{id}/tasks/{task}/output` has both. */
            output_ref?: string | null;
        };
        /** @description Tasks of a run, upstream before downstream. */
        RunTaskList: {
            /** @description Cursor of the next page; absent on the last. */
            next_cursor?: string | null;
            /** @description The tasks. */
            tasks: components["schemas"]["RunTask"][];
            /** @description Stored ones that cannot be read. */
            unreadable?: components["schemas"]["Unreadable"][];
        };
        /** @description What triggered a run. */
        RunTrigger: {
            /** @description Its id: of the schedule, sensor, backfill, webhook or materialization; of a caller, its API key. */
            id?: string | null;
            /** @description What it was. */
            kind: components["schemas"]["RunTriggerKind"];
        };
        /**
         * @description What triggers runs.
         * @enum {string}
         */
        RunTriggerKind: "schedule" | "manual" | "materialization" | "webhook" | "sensor" | "backfill";
        /** @description Why a run or a task waits. */
        RunWait: {
            /**
             * Format: date-time
             * @description When it wakes by itself.
             */
            wakes_at?: string | null;
            /** @description A sentence. */
            why: string;
        };
        /** @description A runbook. */
        Runbook: {
            /**
             * Format: int32
             * @description Version that new batches follow.
             */
            active_version: number;
            /** @description The query of its data source. */
            automation?: components["schemas"]["Automation"];
            /**
             * Format: date-time
             * @description When the first version was published.
             */
            created_at: string;
            /** @description What it is for. */
            description?: string | null;
            /**
             * @description Name of the runbook.
             * @example wave-mailbox-move
             */
            name: string;
            /**
             * Format: date-time
             * @description When it was changed last.
             */
            updated_at: string;
        };
        /** @description Runbooks by name. */
        RunbookList: {
            /** @description Cursor of the next page; absent on the last. */
            next_cursor?: string | null;
            /** @description The runbooks. */
            runbooks: components["schemas"]["Runbook"][];
            /** @description Stored ones that cannot be read. */
            unreadable?: components["schemas"]["Unreadable"][];
        };
        /** @description What a query returns, and what a run would change. */
        RunbookPreview: {
            /**
             * Format: int64
             * @description Members that a run would add.
             */
            added: number;
            /**
             * Format: int64
             * @description Batches in all.
             */
            batches: number;
            /**
             * Format: int64
             * @description Members whose data a run would change.
             */
            changed: number;
            /** @description Names of the columns, in their order. */
            columns: string[];
            /** @description The first 100 batches, earliest first. */
            groups: components["schemas"]["PreviewGroup"][];
            /**
             * Format: int64
             * @description Members whose removal would wait for approval.
             */
            held: number;
            /** @description Why the first of them cannot. */
            problems?: string[];
            /**
             * Format: int64
             * @description Members that a run would remove.
             */
            removed: number;
            /**
             * Format: int64
             * @description Rows in all.
             */
            rows: number;
            /** @description The first 100 rows, in the order of the source. */
            samples: components["schemas"]["PreviewSample"][];
            /**
             * Format: int64
             * @description Rows whose batch time cannot be read.
             */
            skipped: number;
            /**
             * Format: int64
             * @description Rows that a run would skip because their batch has ended.
             */
            skipped_ended?: number;
        };
        /** @description A version of a runbook. Versions never change. */
        RunbookVersion: {
            /**
             * Format: date-time
             * @description When it was published.
             */
            created_at: string;
            /** @description Id of the API key with which it was published. */
            created_by?: string | null;
            /**
             * Format: int64
             * @description Id of the row in `runbooks`.
             */
            id: number;
            /** @description Whether new batches follow it. */
            is_active: boolean;
            moves?: components["schemas"]["VersionMoves"] | null;
            /** @description Name of the runbook. */
            name: string;
            /** @description What happens to phases of running batches that were due before it was published. */
            overdue_behavior: components["schemas"]["OverdueBehavior"];
            /** @description Whether init steps run again in running batches that move to it. */
            rerun_init: boolean;
            /**
             * Format: int32
             * @description The version, from 1.
             */
            version: number;
            /** @description What its author probably did not intend; only in the answer to publishing. */
            warnings?: string[];
            /** @description The YAML document; absent in lists. */
            yaml_content?: string | null;
        };
        /** @description Versions of a runbook, oldest first. */
        RunbookVersionList: {
            /** @description Cursor of the next page; absent on the last. */
            next_cursor?: string | null;
            /** @description Stored ones that cannot be read. */
            unreadable?: components["schemas"]["Unreadable"][];
            /** @description The versions. */
            versions: components["schemas"]["RunbookVersion"][];
        };
        /** @description A view or query to save. */
        Save: {
            /** @description What it is. */
            kind: components["schemas"]["SavedKind"];
            /** @description The page that it belongs to. */
            page?: string | null;
            /** @description The filter or query. */
            text: string;
        };
        /** @description A view or query with its name. */
        Saved: {
            /** @description What it is. */
            kind: components["schemas"]["SavedKind"];
            /** @description Its name, unique in the tenant. */
            name: string;
            /** @description The page that it belongs to. */
            page?: string | null;
            /**
             * Format: date-time
             * @description When it was last saved.
             */
            saved_at: string;
            /** @description Id of the key that saved it; absent on a server without authentication. */
            saved_by?: string | null;
            /** @description The filter or query. */
            text: string;
            /**
             * Format: int64
             * @description Grows with every change; also the `ETag`.
             */
            version: number;
        };
        /**
         * @description What is saved.
         * @enum {string}
         */
        SavedKind: "view" | "query";
        /** @description A page of views and queries, by name. */
        SavedList: {
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
            /** @description The views and queries. */
            saved: components["schemas"]["Saved"][];
            /** @description Rows of this page that cannot be read; absent when there are none. */
            unreadable?: components["schemas"]["Unreadable"][];
        };
        /** @description Something that was found. */
        SearchHit: {
            /** @description What it is asked for by: its id or name. */
            id: string;
            /** @description What it is. */
            kind: components["schemas"]["SearchKind"];
            /**
             * @description What people call it, if that is something else: the name of a schedule, the orchestration or function of an instance, the
             *     runbook of a batch.
             */
            name?: string | null;
            /** @description Its state, if it has one. */
            status?: string | null;
        };
        /**
         * @description What something is that was found.
         * @enum {string}
         */
        SearchKind: "instance" | "function" | "schedule" | "action" | "runbook" | "batch" | "dag" | "hook";
        /** @description What was found. */
        SearchResult: {
            /** @description By kind, and within a kind in the order of its list. */
            hits: components["schemas"]["SearchHit"][];
            /** @description Kinds of which there may be more than was found: a search looks at a bounded number of rows. */
            truncated?: components["schemas"]["SearchKind"][];
        };
        /** @description A signal, or a message for a mailbox. */
        Send: {
            /** @description What is sent. */
            data?: components["schemas"]["Json"];
            /** @description The sender's id of this message; repeats are dropped. */
            id?: string | null;
            /**
             * @description Name of the signal or mailbox.
             * @example approved
             */
            name: string;
        };
        /** @description Messages to send. */
        SendMessages: {
            /** @description 1 to 100 messages. */
            messages: components["schemas"]["BusMessage"][];
        };
        /** @description A session, without its secret. */
        Session: {
            /**
             * Format: date-time
             * @description When the browser signed in.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it ends. Requests renew it.
             */
            expires_at: string;
            /** @description Its id. */
            id: string;
            /** @description Id of the key that it was made with. It may do what the key may, and ends with the key. */
            key: string;
        };
        /** @description Sessions. */
        SessionList: {
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
            /** @description Ascending by id. */
            sessions: components["schemas"]["Session"][];
            /** @description Rows of this page that cannot be read; absent when there are none. */
            unreadable?: components["schemas"]["Unreadable"][];
        };
        /** @description The switch of a runbook's query. */
        SetAutomation: {
            /** @description Whether the data source is queried every interval. */
            enabled: boolean;
        };
        /** @description A setting of the node that answers. */
        Setting: {
            /** @description Where it comes from: `default`, `program`, a file, `$VARIABLE` or `--flag`. */
            origin: string;
            /** @description Its name, as in `server.listen`. */
            setting: string;
            /** @description Its value as TOML; `unset` without one. Secrets are left out. */
            value: string;
        };
        /** @description Settings, by name. */
        SettingList: {
            /** @description The node that has them. */
            node: string;
            /** @description The settings. */
            settings: components["schemas"]["Setting"][];
        };
        /** @description The end of a delivery. */
        SettleMessage: {
            /** @description Of a dead letter: what happened, for people. */
            description?: string | null;
            /** @description The lock. */
            lock: string;
            /** @description How it ends. */
            outcome: components["schemas"]["SettleOutcome"];
            /** @description Of a dead letter: a short code. */
            reason?: string | null;
        };
        /**
         * @description How a delivery ends.
         * @enum {string}
         */
        SettleOutcome: "complete" | "abandon" | "dead_letter";
        /**
         * @description How bad it is.
         * @enum {string}
         */
        Severity: "error" | "warning";
        /** @description A key that becomes a session. */
        SignIn: {
            /** @description The key itself. It is not kept: the session has a secret of its own. */
            key: string;
        };
        /** @description The answer of a query. */
        SqlAnswer: {
            /** @description Names of the columns. */
            columns: string[];
            /**
             * Format: int64
             * @description Time in which the query was evaluated over what was fetched, in milliseconds.
             */
            evaluate_ms: number;
            /**
             * Format: int64
             * @description Time in which tables were read, in milliseconds.
             */
            fetch_ms: number;
            /** @description What was fetched of each table. */
            fetched: components["schemas"]["SqlFetched"][];
            /** @description Rows: texts, numbers and nulls, one for each column. */
            rows: components["schemas"]["Json"][][];
            /** @description Whether there are more rows than the limits allow. */
            truncated: boolean;
        };
        /** @description What queries may name. */
        SqlCatalogue: {
            /** @description Functions that queries may call. */
            functions: string[];
            /** @description Shipped queries. */
            shipped: components["schemas"]["SqlShipped"][];
            /** @description The tables. */
            tables: components["schemas"]["SqlTable"][];
        };
        /** @description A column of a table. */
        SqlColumn: {
            /** @description What it means. */
            description: string;
            /** @description Its name. */
            name: string;
            /** @description Conditions that the table applies without reading other rows: `=`, `prefix` or `range`. */
            pushed?: string[];
            /** @description `text`, `integer`, `real`, `flag` (0 or 1), `time` (RFC 3339 with three decimals in UTC) or `json` (as text). */
            type: string;
        };
        /** @description What was fetched of a table for a query. */
        SqlFetched: {
            /** @description The names by which the query refers to it. */
            aliases: string[];
            /** @description The columns that were read. */
            columns: string[];
            /** @description Conditions that were applied to rows as they were read. */
            filtered: string[];
            /**
             * Format: int64
             * @description Rows that were kept for the evaluation.
             */
            kept_rows: number;
            /**
             * Format: int64
             * @description After so many rows reading stopped.
             */
            limit?: number | null;
            /** @description Conditions that the table applied itself: other rows were not read. */
            pushed: string[];
            /**
             * Format: int64
             * @description Their bytes, about.
             */
            read_bytes: number;
            /**
             * Format: int64
             * @description Rows that were read.
             */
            read_rows: number;
            /**
             * Format: int64
             * @description How often the table was read.
             */
            scans: number;
            /** @description The table. */
            table: string;
        };
        /**
         * @description Form of an answer.
         * @enum {string}
         */
        SqlFormat: "json" | "csv" | "parquet";
        /** @description A query. */
        SqlQuery: {
            /** @default null */
            format?: components["schemas"]["SqlFormat"] | null;
            /**
             * @description Most rows of the answer; 1000 without it.
             * @default null
             */
            max_rows?: number | null;
            /**
             * @description One SELECT, or WITH … SELECT, in SQLite's dialect. Give either this or `shipped`.
             * @default null
             * @example SELECT status, count(*) FROM instances GROUP BY status
             */
            query?: string | null;
            /**
             * @description Name of a shipped query; `GET /v1/sql` lists them.
             * @default null
             * @example slowest-functions
             */
            shipped?: string | null;
            /**
             * Format: int64
             * @description Time that the query may take, with its wait for a place; 10 seconds without it.
             * @default null
             */
            timeout_seconds?: number | null;
        };
        /** @description A shipped query. */
        SqlShipped: {
            /** @description What it shows. */
            description: string;
            /** @description Its name. */
            name: string;
            /** @description The query. */
            query: string;
        };
        /** @description A table. */
        SqlTable: {
            /** @description Its columns. */
            columns: components["schemas"]["SqlColumn"][];
            /** @description What its rows are. */
            description: string;
            /** @description Its name. */
            name: string;
        };
        /** @description A start. */
        StartInstance: {
            /** @description Id of the instance; a new one without it. With an id a start can be repeated safely. */
            id?: string | null;
            /** @description Input; `null` without it. */
            input?: components["schemas"]["Json"];
            /** @description Labels to find it by. */
            labels?: {
                [key: string]: string;
            };
            /** @description What to do when there is one of this id already. */
            on_conflict?: components["schemas"]["OnConflict"];
            /**
             * @description Name of the orchestration.
             * @example greet
             */
            orchestration: string;
            /**
             * Format: date-time
             * @description Not before this time.
             */
            start_at?: string | null;
            /** @description Version of the orchestration; the registered default without it. */
            version?: string | null;
        };
        /** @description A run that is to be started. */
        StartRun: {
            /** @description Name of the DAG. */
            dag: string;
            /** @description Labels. */
            labels?: {
                [key: string]: string;
            };
            /** @description Parameters by name. Absent ones have their defaults. */
            params?: Record<string, never>;
            /**
             * @description Key of the partition; required by a DAG that has `partitioned_by`.
             * @example 2026-11-18
             */
            partition?: string | null;
            /** @description Names the run: a second request with the same key and the same payload returns the same run. */
            run_key?: string | null;
            /**
             * @description Which tasks run: `load` is one task, `+load` it and all before it, `load+` it and all after it, `+load+` both. All tasks run
             *     without it.
             * @example [
             *       "+load"
             *     ]
             */
            select?: string[];
            /**
             * Format: int32
             * @description Version of the DAG; the active one by default.
             */
            version?: number | null;
        };
        /** @description The answer to a start. */
        Started: {
            /** @description Whether this call made it. */
            created: boolean;
            /** @description Id of the instance. */
            id: string;
            instance?: components["schemas"]["Instance"] | null;
            /** @description Its namespace. */
            namespace: string;
            /** @description Its tenant. */
            tenant: string;
        };
        /** @description A run that was started. */
        StartedRun: {
            /** @description Whether the request created the run; otherwise its key had one. */
            created: boolean;
            /** @description Id of the run. */
            id: string;
            /** @description Whether reads show the run already. It is started in any case. */
            is_visible: boolean;
        };
        /**
         * @description What happened in a tenant, summed over all nodes. Nodes write their counts every 5 seconds, and
         *     a node that is killed loses those since then. Counts are kept for a day.
         */
        Stats: {
            /** @description Failures by code, or by category where there is none, most first. */
            failures: components["schemas"]["FailureStats"][];
            /** @description How calls ended, by function, most first; at most 100, the rest as `(others)`. */
            functions: components["schemas"]["NameStats"][];
            /** @description Whether some counts could not be read, so that all numbers are lower bounds. */
            incomplete?: boolean;
            /**
             * @description How all other instances ended, by orchestration, most first; at most 100, the rest as
             *     `(others)`.
             */
            orchestrations: components["schemas"]["NameStats"][];
            /** @description Points without gaps, in order; the last one is not over. */
            points: components["schemas"]["StatsPoint"][];
            /**
             * @description Lengths of the queues of the whole store, once a minute; only for keys with a grant for all
             *     tenants.
             */
            queues?: components["schemas"]["QueueStats"][];
            /**
             * Format: int64
             * @description Seconds of a point.
             */
            step: number;
        };
        /** @description What happened in the time from a point to the next one. */
        StatsPoint: {
            /**
             * Format: date-time
             * @description Where it begins.
             */
            at: string;
            /**
             * Format: int64
             * @description That were cancelled.
             */
            cancelled: number;
            /**
             * Format: int64
             * @description That completed.
             */
            completed: number;
            /**
             * Format: int64
             * @description That failed.
             */
            failed: number;
            /**
             * Format: int64
             * @description Half of the timers that were delivered were at most so late, in milliseconds; absent when
             *     there were none.
             */
            late_p50_ms?: number | null;
            /**
             * Format: int64
             * @description All but one of a hundred were at most so late.
             */
            late_p99_ms?: number | null;
            /**
             * Format: int64
             * @description Instances that began.
             */
            started: number;
        };
        /**
         * @description State of an instance.
         * @enum {string}
         */
        Status: "pending" | "running" | "paused" | "completed" | "failed" | "cancelled" | "continued_as_new";
        /** @description One step for one member, or an init step. */
        Step: {
            /**
             * Format: int64
             * @description The member; absent for an init step.
             */
            batch_member_id?: number | null;
            /**
             * Format: date-time
             * @description When it ended.
             */
            completed_at?: string | null;
            /**
             * Format: date-time
             * @description When the current attempt was sent.
             */
            dispatched_at?: string | null;
            /** @description Why the last attempt failed. */
            error_message?: string | null;
            /** @description The function. */
            function_name: string;
            /**
             * Format: int64
             * @description Id of the step execution.
             */
            id: number;
            /** @description Job that was sent last. */
            job_id?: string | null;
            /** @description Its parameters as JSON text. */
            params_json: string;
            /**
             * Format: int64
             * @description The phase; absent for an init step.
             */
            phase_execution_id?: number | null;
            /**
             * Format: int32
             * @description Polls of the current attempt.
             */
            poll_count: number;
            /** @description What the worker returned, as JSON text. */
            result_json?: string | null;
            /**
             * Format: int32
             * @description Attempts after the first.
             */
            retry_count: number;
            /** @description Which step of its rollback failed, and why. */
            rollback_error?: string | null;
            /** @description How far its rollback has got: `waiting`, `running`, `succeeded` or `failed`. */
            rollback_state?: string | null;
            /** @description State of the step. */
            status: components["schemas"]["StepStatus"];
            /**
             * Format: int32
             * @description Order within its phase, from 0.
             */
            step_index: number;
            /** @description Name of the step. */
            step_name: string;
            /** @description The worker pool. */
            worker_id: string;
        };
        /**
         * @description State of a step.
         * @enum {string}
         */
        StepStatus: "pending" | "dispatched" | "succeeded" | "failed" | "polling" | "poll_timeout" | "rolled_back" | "cancelled" | "skipped";
        /** @description What the store takes on its disk. Figures that a store does not have are absent. */
        StoreFigures: {
            /**
             * Format: int64
             * @description Bytes of all its data.
             */
            bytes?: number | null;
            /** @description Damage that the store has met, if any. */
            damage?: string | null;
            /**
             * Format: int64
             * @description Size of the disk that it is on.
             */
            disk_bytes?: number | null;
            /**
             * Format: int64
             * @description What is free on that disk.
             */
            disk_free_bytes?: number | null;
            /**
             * Format: int64
             * @description Of these, bytes of its log, which a checkpoint has not freed yet.
             */
            log_bytes?: number | null;
            /** @description Where it is, without passwords. */
            place: string;
            /** @description Kind of store. */
            store: string;
        };
        /** @description A message of a subscription that is neither completed nor dead. */
        StoredBusMessage: {
            /**
             * Format: int32
             * @description How often it was delivered.
             */
            delivery_count: number;
            /**
             * Format: date-time
             * @description When it was sent.
             */
            enqueued_at: string;
            /**
             * Format: date-time
             * @description When it becomes a dead letter.
             */
            expires_at: string;
            /** @description Its number in the subscription. */
            id: string;
            /** @description The message. */
            message: components["schemas"]["BusMessage"];
            /** @description What it waits for. */
            state: components["schemas"]["BusMessageState"];
            /**
             * Format: date-time
             * @description From when it can be received: its scheduled time, or the end of its lock.
             */
            visible_at: string;
        };
        /** @description A node and its store. */
        System: {
            /** @description Counts over the whole store. */
            counts: components["schemas"]["Counts"];
            /** @description Name of the node that answered. */
            node: string;
            /** @description Orchestrations that the node knows, with their versions. */
            orchestrations: {
                [key: string]: string[];
            };
            /** @description What the node does: `api`, `orchestrator`, `worker`. */
            roles: string[];
            /** @description Kind of store. */
            store: string;
            /** @description Version of the server. */
            version: string;
        };
        /** @description A start or an end was accepted: it is durable. */
        TaskAcknowledged: {
            /** @description Always true; a report that is not accepted is answered with a problem. */
            acknowledged: boolean;
            /** @description Whether reads of the run show it. They do so a moment later otherwise. */
            isVisible: boolean;
            /**
             * Format: date-time
             * @description The time of the server.
             */
            serverTime: string;
        };
        /** @description A heartbeat was accepted. */
        TaskAlive: {
            /** @description Always true; a report that is not accepted is answered with a problem. */
            acknowledged: boolean;
            /** @description Why. */
            cancelReason?: string | null;
            /**
             * Format: date-time
             * @description The time of the server.
             */
            serverTime: string;
            /** @description Whether the run was cancelled: end the attempt and report `CANCELLED`. */
            shouldCancel: boolean;
            /** @description A token that is valid for longer than the one of the request. Use it from now on. */
            taskToken: string;
            /**
             * Format: date-time
             * @description Until when.
             */
            tokenExpiresAt: string;
        };
        /** @description The new state of a task. */
        TaskChange: {
            /**
             * Format: int32
             * @description Its attempt; 0 before the first.
             */
            attempt: number;
            /** @description Its key. */
            key: string;
            /** @description Its state. */
            status: components["schemas"]["TaskStatus"];
        };
        /** @description The attempt has ended. */
        TaskCompleted: {
            /**
             * Format: int32
             * @description Number of the attempt, as in the envelope.
             */
            attempt: number;
            /** @description Id of the attempt, as in the envelope. */
            attemptId: string;
            /** @description Where it was when it was cancelled. */
            cancelledDuringPhase?: string | null;
            /**
             * Format: date-time
             * @description When, by the clock of the worker. It is not stored: the time of receipt counts.
             */
            completedAt?: string | null;
            error?: components["schemas"]["TaskError"] | null;
            metrics?: components["schemas"]["TaskMetrics"] | null;
            /** @description How it ended. */
            outcome: components["schemas"]["TaskOutcome"];
            output?: components["schemas"]["TaskOutput"] | null;
            partialProgress?: components["schemas"]["Json"] | null;
            /** @description W3C trace context of the worker. It is not stored. */
            traceparent?: string | null;
            /** @description Name of the worker. */
            workerId: string;
        };
        /** @description Why an attempt failed. */
        TaskError: {
            /** @description `USER_CODE`, `INFRASTRUCTURE`, `TIMEOUT`, `DATA_QUALITY`, `CONFIGURATION`, `CANCELLED`, or one of your own. */
            category?: string | null;
            /** @description What happened; cut after 4 KiB. */
            message: string;
            /**
             * @description Whether another attempt may succeed. Without it the category decides: `DATA_QUALITY`, `CONFIGURATION` and `CANCELLED` are
             *     not tried again.
             */
            retryable?: boolean | null;
            /** @description Where it happened; cut after 4 KiB. */
            stackTrace?: string | null;
        };
        /** @description The attempt is alive. */
        TaskHeartbeat: {
            /**
             * Format: int32
             * @description Number of the attempt, as in the envelope.
             */
            attempt: number;
            /** @description Id of the attempt, as in the envelope. */
            attemptId: string;
            /**
             * Format: date-time
             * @description When, by the clock of the worker. It is not stored: the time of receipt counts.
             */
            heartbeatAt?: string | null;
            /** @description What the worker adds. */
            message?: string | null;
            /**
             * Format: int32
             * @description How far the attempt is, in percent.
             */
            progressPct?: number | null;
            /** @description W3C trace context of the worker. It is not stored. */
            traceparent?: string | null;
            /** @description Name of the worker. */
            workerId: string;
        };
        /** @description What an attempt used. */
        TaskMetrics: {
            /**
             * Format: int64
             * @description Processor time.
             */
            cpuTimeMs?: number | null;
            /**
             * Format: int64
             * @description Bytes read.
             */
            ioReadBytes?: number | null;
            /**
             * Format: int64
             * @description Bytes written.
             */
            ioWriteBytes?: number | null;
            /**
             * Format: int64
             * @description Most memory at a time.
             */
            peakMemoryBytes?: number | null;
        };
        /**
         * @description How an attempt ended.
         * @enum {string}
         */
        TaskOutcome: "SUCCEEDED" | "FAILED" | "SKIPPED" | "CANCELLED";
        /** @description What an attempt made. */
        TaskOutput: {
            /**
             * Format: int64
             * @description Bytes that it wrote.
             */
            byteSize?: number | null;
            /** @description Partition of that table. */
            deltaPartition?: string | null;
            /** @description Table that it wrote. */
            deltaTable?: string | null;
            /**
             * Format: int64
             * @description Version of that table.
             */
            deltaVersion?: number | null;
            /** @description Id of what it made. */
            materializationId?: string | null;
            /** @description Where it wrote. */
            outputPath?: string | null;
            outputVisibilityState?: components["schemas"]["OutputVisibility"] | null;
            /** @description Why they do not. */
            publishError?: string | null;
            /**
             * Format: date-time
             * @description Since when.
             */
            publishedAt?: string | null;
            /**
             * Format: int64
             * @description Rows that it wrote.
             */
            rowCount?: number | null;
            value?: components["schemas"]["Json"] | null;
        };
        /** @description A worker has started the attempt. */
        TaskStarted: {
            /**
             * Format: int32
             * @description Number of the attempt, as in the envelope.
             */
            attempt: number;
            /** @description Id of the attempt, as in the envelope. */
            attemptId: string;
            /**
             * Format: date-time
             * @description When the worker started, by its clock. It is not stored: the time of receipt counts.
             */
            startedAt?: string | null;
            /** @description W3C trace context of the worker. It is not stored. */
            traceparent?: string | null;
            /** @description Name of the worker. */
            workerId: string;
        };
        /**
         * @description State of a task.
         * @enum {string}
         */
        TaskStatus: "planned" | "blocked" | "ready" | "dispatched" | "running" | "retry_wait" | "skipped" | "cancelled" | "failed" | "succeeded";
        /** @description A request as a sender would make it, to find out whether the route would take it. Nothing is received. */
        TestHook: {
            /** @description Its body as text. */
            body?: string;
            /** @description Its headers, with the signature. */
            headers?: {
                [key: string]: string;
            };
        };
        /** @description What wakes up by itself, soonest first. */
        TimerList: {
            /**
             * Format: int64
             * @description Instances that were looked at.
             */
            examined: number;
            /** @description Soonest first, at most 500. */
            timers: components["schemas"]["PendingTimer"][];
            /**
             * @description Whether there may be more: only the newest instances that run or wait for their start were looked at, or there are more
             *     timers than are shown, or a history was too long.
             */
            truncated?: boolean;
        };
        /** @description A page of an instance and its descendants. */
        Tree: {
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
            /** @description Depth first: each before its children, those newest first. The root is first of all. */
            nodes: components["schemas"]["TreeNode"][];
            /** @description The root. */
            root: string;
            /**
             * @description Children on this page that cannot be read, which are not among the nodes, nor is what is
             *     below them; absent when there are none.
             */
            unreadable?: components["schemas"]["Unreadable"][];
        };
        /** @description An instance in a tree. */
        TreeNode: {
            /**
             * Format: date-time
             * @description When it ended.
             */
            completed_at?: string | null;
            /**
             * Format: date-time
             * @description When it was created.
             */
            created_at: string;
            /** @description Generations below the root; 0 is the root itself. */
            depth: number;
            /** @description The function that it calls; absent for an orchestration. */
            function?: string | null;
            /** @description Its id. */
            id: string;
            /** @description Name of its orchestration; absent until its first turn. */
            orchestration?: string | null;
            /** @description Id of its parent. */
            parent?: string | null;
            /** @description State. */
            status: components["schemas"]["Status"];
        };
        /** @description Something that could not be looked for. */
        UnknownProblem: {
            /** @description What. */
            kind: components["schemas"]["ProblemKind"];
            /** @description Why. */
            reason: string;
        };
        /**
         * @description A stored row that cannot be read. One that does not decode can be deleted by its id; one on a
         *     damaged block of the store cannot.
         */
        Unreadable: {
            /**
             * @description Its id or name. Empty for a damaged range of rows whose ids cannot be read either; how many
             *     there are is not known.
             */
            id: string;
            /** @description Why it cannot be read. */
            reason: string;
        };
        /** @description Events that cannot be read. */
        UnreadableEvents: {
            /**
             * Format: int64
             * @description The last event before them that can be read; 0 if there is none.
             */
            after: number;
            /**
             * Format: int64
             * @description The first event behind them that can be read; absent if there is none.
             */
            before?: number | null;
            /** @description Why they cannot be read. */
            reason: string;
        };
        /** @description What a version does to the open batches of its runbook. */
        VersionMoves: {
            /**
             * Format: int64
             * @description Batches with a start time, which move to the version.
             */
            batches: number;
            /**
             * Format: int64
             * @description Batches in which init steps run again.
             */
            init_again: number;
            /**
             * Format: int64
             * @description Members that take part in them.
             */
            members: number;
            /**
             * Format: int64
             * @description Batches that move and were not counted, because there are more than 1,000.
             */
            not_counted: number;
            /** @description Phases that run again, are skipped, or have to be approved again. */
            phases: components["schemas"]["PhaseMoves"][];
            /**
             * Format: int64
             * @description Batches that are advanced by hand, which stay with their version.
             */
            staying: number;
        };
        /**
         * @description What an instance waits for.
         * @enum {string}
         */
        WaitKind: "start" | "resume" | "timer" | "signal" | "mailbox" | "activity" | "child" | "turn";
        /**
         * @description Where an activity is.
         * @enum {string}
         */
        WaitState: "ready" | "delayed" | "held" | "exhausted" | "settling";
        /** @description What to do with a lease. */
        WorkAnswer: {
            /** @description Answer the call with its result. */
            complete: components["schemas"]["CompleteWork"];
        } | {
            /** @description Answer it with a failure. */
            fail: components["schemas"]["FailWork"];
        } | {
            /** @description Extend the lease. */
            heartbeat: components["schemas"]["Heartbeat"];
        } | {
            /** @description Give the call back. */
            release: components["schemas"]["ReleaseWork"];
        };
        /** @description A call with the right to answer for it; also the body of a call that is pushed. */
        WorkItem: {
            /**
             * Format: int32
             * @description Attempt by the retry policy, from 1.
             */
            attempt: number;
            /**
             * Format: date-time
             * @description When nobody waits for the call any more.
             */
            deadline?: string | null;
            /**
             * Format: int32
             * @description How often this attempt has been handed out, this time included.
             */
            delivery: number;
            /** @description The function to run. */
            function: string;
            /**
             * Format: int64
             * @description Longest silence between two heartbeats, in milliseconds. The lease is never longer.
             */
            heartbeat_timeout_ms?: number | null;
            /** @description The same for every attempt and delivery of the call: hand it to whatever must not happen twice. */
            idempotency_key: string;
            /** @description Its input. */
            input: components["schemas"]["Json"];
            /** @description The instance that made the call. */
            instance: string;
            /** @description The right to answer, to be shown with every answer. Nothing is to be read from it. */
            lease: string;
            /**
             * Format: date-time
             * @description When the lease ends unless a heartbeat extends it, by the store's clock.
             */
            lease_expires_at: string;
            progress?: components["schemas"]["Json"] | null;
            /**
             * Format: int64
             * @description Longest time of this attempt, in milliseconds from the fetch.
             */
            timeout_ms?: number | null;
            /** @description W3C trace context of the caller. */
            traceparent?: string | null;
        };
        /** @description A worker that has been heard of lately. */
        Worker: {
            /** @description Functions that it asked for by themselves. None for a worker of pools alone: the pools have them. */
            functions: string[];
            /**
             * Format: int64
             * @description Calls that it has leased from this node and not answered there; among the workers of a pool, those of that pool.
             */
            in_flight: number;
            /**
             * Format: date-time
             * @description When it last fetched or answered.
             */
            last_seen_at: string;
            /** @description The node that it talks to. A worker that talks to several is listed once for each. */
            node: string;
            /** @description The pools that it asked for in the last two minutes or holds calls of, by name; absent when there are none. */
            pools?: string[];
            /** @description Tags that it asked for, with those functions. */
            tags: string[];
            /** @description The name that it gives itself. */
            worker: string;
        };
        /** @description A page of workers, by name. */
        WorkerList: {
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
            /** @description Rows of this page that cannot be read; absent when there are none. */
            unreadable?: components["schemas"]["Unreadable"][];
            /** @description The workers. */
            workers: components["schemas"]["Worker"][];
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
