package coinslot;

import coinslot.generated.ApiClient;
import coinslot.generated.ApiException;
import coinslot.generated.ApiResponse;
import coinslot.generated.api.AudioApi;
import coinslot.generated.api.ServiceApi;
import coinslot.generated.api.TextApi;
import coinslot.generated.model.SummarizeRequest;
import coinslot.generated.model.TextToSpeechRequest;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;

/** Pays with the generated client: a call without payment, its challenge signed by the program in SIGNER, the call again. */
public final class Buy {
  private interface Call<T> {
    ApiResponse<T> with(String payment) throws ApiException;
  }

  public static void main(String[] arguments) throws Exception {
    var client = new ApiClient();
    client.updateBaseUri(System.getenv("COINSLOT_URL"));
    var text = new TextApi(client);
    var request = new SummarizeRequest().text("The bridge closes on Monday. Ferries run every ten minutes.");
    var summary = paid(payment -> text.summarizeWithHttpInfo(request, payment, null, null));
    expect(!summary.getData().getSummary().isEmpty(), "no summary");

    var audio = new AudioApi(client);
    var spoken = new TextToSpeechRequest().text("One coin.");
    var speech = paid(payment -> audio.textToSpeechWithHttpInfo(spoken, payment, null, null));
    var start = Arrays.copyOf(Files.readAllBytes(speech.getData().toPath()), 4);
    expect(Arrays.equals(start, "RIFF".getBytes()), "the speech is no WAV file");

    var voices = new ServiceApi(client).listVoices();
    expect(voices.getVoices().stream().anyMatch(voice -> voice.getId().equals(voices.getDefault())), "no default voice");
  }

  private static <T> ApiResponse<T> paid(Call<T> call) throws Exception {
    String challenge;
    try {
      call.with(null);
      throw new IllegalStateException("answered without payment");
    } catch (ApiException unpaid) {
      expect(unpaid.getCode() == 402, "status " + unpaid.getCode());
      challenge = unpaid.getResponseHeaders().firstValue("PAYMENT-REQUIRED").orElseThrow();
    }
    var answer = call.with(sign(challenge));
    expect(answer.getStatusCode() == 200 && answer.getHeaders().containsKey("payment-response"), "not settled");
    return answer;
  }

  private static String sign(String challenge) throws Exception {
    var process = new ProcessBuilder("node", System.getenv("SIGNER"), challenge)
        .redirectError(ProcessBuilder.Redirect.INHERIT)
        .start();
    var payment = new String(process.getInputStream().readAllBytes());
    expect(process.waitFor(30, TimeUnit.SECONDS) && process.exitValue() == 0, "the signer failed");
    return payment;
  }

  private static void expect(boolean condition, String message) {
    if (!condition) throw new IllegalStateException(message);
  }
}
