// Runs before the first paint, so that the page never flashes in the other theme.
(function () {
  let theme = "system";
  try {
    theme = localStorage.getItem("segno.theme") || "system";
  } catch {
    // Storage is switched off in this browser: follow the system.
  }
  const dark = theme === "dark" || (theme === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.classList.toggle("dark", dark);
})();
