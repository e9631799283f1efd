// No module, so that it runs if one of them did not come: a browser asks for each once, and draws nothing without it.
// Before the style sheet, whose loss would be over when this ran behind it.
'use strict';
(() => {
  const HAS_RELOADED = 'has-reloaded';
  const isNeeded = ({ tagName, type, rel }) =>
    (tagName === 'SCRIPT' && type === 'module') || (tagName === 'LINK' && rel === 'stylesheet');
  let isWhole = true;
  // Once: not if the browser keeps nothing for the page, which could not know then that it has been loaded before.
  const mayReload = () => {
    try {
      if (sessionStorage.getItem(HAS_RELOADED)) return false;
      sessionStorage.setItem(HAS_RELOADED, 'yes');
      return true;
    } catch { return false; }
  };
  const tell = () => {
    document.getElementById('unloaded').hidden = false;
    document.getElementById('reload').addEventListener('click', () => location.reload());
  };
  document.addEventListener('error', event => {
    if (!isNeeded(event.target) || !isWhole) return;
    isWhole = false;
    if (mayReload()) location.reload();
    else if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', tell);
    else tell();
  }, true);
  addEventListener('load', () => {
    if (!isWhole) return;
    try { sessionStorage.removeItem(HAS_RELOADED); } catch { /* nothing is kept */ }
  });
})();
