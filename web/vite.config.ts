import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const server = process.env.SEGNO_SERVER ?? "http://127.0.0.1:7070";
const proxied = Object.fromEntries(["/v1", "/docs", "/openapi.json"].map((path) => [path, server]));

export default defineConfig({
  // The server writes its path into `<base href>`; relative links make one build serve every path.
  base: "./",
  plugins: [react(), tailwindcss()],
  server: { proxy: proxied },
  build: {
    outDir: "../crates/web/dist",
    emptyOutDir: true,
    sourcemap: false,
    // The policy `script-src 'self'` forbids scripts in data URLs.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
